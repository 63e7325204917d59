import { arch, cpus, release } from 'node:os'
import { Device, driverVersion } from '@shoal/driver'
import type { BenchOptions } from '../options.js'
import type { RankGroup } from '../rankGroup.js'

/** The machine of a measurement. */
export interface MachineFacts {
  readonly platform: string
  readonly arch: string
  readonly kernel: string
  readonly cpu: string | undefined
  readonly cores: number
}

/** @internal */
export function machineFacts(): MachineFacts {
  const processors = cpus()
  const cpu = processors[0]?.model
  return { platform: process.platform, arch: arch(), kernel: release(), cpu, cores: processors.length }
}

/** Content of the `--json` file. Times are microseconds, bandwidths GB/s with 10^9 bytes. */
export interface Report<Row> {
  readonly benchmark: string
  readonly date: string
  /** Whether this is the software device, whose figures are meaningless. */
  readonly software: boolean
  readonly library: { readonly name: string; readonly version: string }
  readonly driver: string
  readonly node: string
  readonly machine: MachineFacts
  /** Names of this machine's devices. */
  readonly devices: readonly string[]
  readonly ranks: number
  readonly processes: number
  readonly options: BenchOptions
  readonly rows: readonly Row[]
  /** Values computed from all rows. */
  readonly summary?: object
}

export function reportOf<Row>(
  rankGroup: Pick<RankGroup, 'worldSize' | 'processes'>,
  library: Report<Row>['library'],
  rows: readonly Row[],
  options: BenchOptions,
): Report<Row> {
  return {
    benchmark: options.test,
    date: new Date().toISOString(),
    software: options.software,
    library,
    driver: driverVersion().toString(),
    node: process.version,
    machine: machineFacts(),
    devices: Array.from(Device.all(), (device) => device.name),
    ranks: rankGroup.worldSize,
    processes: rankGroup.processes,
    options,
    rows,
  }
}

/** Returns the lines above a table that describe the setup. */
export function introduction({
  benchmark,
  library,
  ranks,
  processes,
  devices,
  driver,
  software,
  options,
}: Report<unknown>): string[] {
  const spread = processes === 1 ? 'one process' : `${processes} processes`
  const versions = library.name === 'CUDA driver' ? '' : `, CUDA driver ${driver}`
  return [
    ...(software ? ['# SOFTWARE DEVICE: this CPU does the work, the figures say nothing about a GPU'] : []),
    `# shoal bench ${benchmark}: ${ranks} ${ranks === 1 ? 'rank' : 'ranks'} in ${spread}, ${library.name} ${library.version}${versions}, Node ${process.version}`,
    `# ${[...new Set(devices)].map((name) => `${devices.filter((one) => one === name).length} × ${name}`).join(', ')}`,
    `# iterations ${options.iterations} after ${options.warmUps} warm-ups`,
    '#',
  ]
}
