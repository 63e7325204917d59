import { arch, cpus } from 'node:os'
import { Device, driverVersion } from '@shoal/driver'
import type { BenchOptions } from '../options.js'
import type { Party } from '../party.js'

/** What `--json` writes. Times are microseconds, bandwidths GB/s with 10^9 bytes. */
export interface Report<Row> {
  readonly benchmark: string
  readonly date: string
  /** On the software device: the figures mean nothing. */
  readonly software: boolean
  readonly library: { readonly name: string; readonly version: string }
  readonly driver: string
  readonly node: string
  readonly machine: { readonly platform: string; readonly arch: string; readonly cpu: string | undefined }
  /** Names of this machine's devices. */
  readonly devices: readonly string[]
  readonly ranks: number
  readonly processes: number
  readonly options: BenchOptions
  readonly rows: readonly Row[]
  /** What was made of all rows. */
  readonly summary?: object
}

export function reportOf<Row>(
  party: Pick<Party, 'worldSize' | 'processes'>,
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
    machine: { platform: process.platform, arch: arch(), cpu: cpus()[0]?.model },
    devices: Array.from(Device.all(), (device) => device.name),
    ranks: party.worldSize,
    processes: party.processes,
    options,
    rows,
  }
}

/** The lines above a table that say what was measured on what. */
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
  return [
    ...(software ? ['# SOFTWARE DEVICE: this CPU does the work, the figures say nothing about a GPU'] : []),
    `# shoal bench ${benchmark}: ${ranks} ${ranks === 1 ? 'rank' : 'ranks'} in ${spread}, ${library.name} ${library.version}, CUDA driver ${driver}, Node ${process.version}`,
    `# ${[...new Set(devices)].map((name) => `${devices.filter((one) => one === name).length} × ${name}`).join(', ')}`,
    `# iterations ${options.iterations} after ${options.warmUps} warm-ups`,
    '#',
  ]
}
