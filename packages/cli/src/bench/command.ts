import { join } from 'node:path'
import { findSoftwareDeviceFrom } from '@shoal/ffi'
import { AbortedError, ShoalError } from '@shoal/types'
import type { Command } from '../command.js'
import { benchCalls } from './calls.js'
import { benchCollective } from './collectives/bench.js'
import { type Operation, operations } from './collectives/operations.js'
import { benchNvshmem, nvshmemTests } from './nvshmem/bench.js'
import { type BenchOptions, type OptionName, readOptions, sizeOptions, usage } from './options.js'

type Test = (options: BenchOptions, commandLine: readonly string[]) => Promise<number>

const tests: { readonly [name: string]: Test } = {
  ...Object.fromEntries(
    operations.map((operation): [string, Test] => [operation.name, (options) => benchCollective(operation, options)]),
  ),
  ...Object.fromEntries(nvshmemTests.map((name) => [name, benchNvshmem])),
  calls: benchCalls,
}

/** Options of each test, in addition to those of all tests. */
export const optionsOf: { readonly [test: string]: readonly OptionName[] } = {
  ...Object.fromEntries(operations.map((operation) => [operation.name, takenBy(operation)])),
  put: [...sizeOptions, 'check', 'devices', 'timeout'],
  get: [...sizeOptions, 'check', 'devices', 'timeout'],
  atomic: ['check', 'devices', 'timeout'],
  barrier: ['devices', 'timeout'],
  calls: [],
}

function takenBy({ reduces, rooted, inPlace }: Operation): OptionName[] {
  const some = { op: reduces, root: rooted, 'in-place': inPlace !== undefined }
  const names = (Object.keys(some) as (keyof typeof some)[]).filter((name) => some[name])
  return [...sizeOptions, 'datatype', 'check', 'devices', 'timeout', ...names]
}

export const benchCommand: Command = {
  usage,
  async run(commandLine) {
    const options = readOptions(commandLine, optionsOf)
    // Before any library is loaded.
    if (options.software) prepareSoftwareDevice(options)
    // --device gpu overrides the environment.
    else if (process.env['SHOAL_DEVICE'] === 'sim') delete process.env['SHOAL_DEVICE']
    try {
      return await (tests[options.test] as Test)(options, commandLine)
    } catch (error) {
      // Such as a missing library or device: the message suffices.
      if (!(error instanceof ShoalError)) throw error
      // The cause names the lost rank.
      const { cause } = error
      const reason = error instanceof AbortedError && cause instanceof ShoalError ? cause : error
      console.error(`shoal bench: ${reason.message}`)
      return 1
    }
  },
}

/** Sets the environment for the software device, which reads it when it loads. */
function prepareSoftwareDevice({ devices }: BenchOptions): void {
  process.env['SHOAL_DEVICE'] = 'sim'
  findSoftwareDeviceFrom(join(process.cwd(), 'package.json')) // npx runs the command line far from the program
  if (devices !== undefined) process.env['SHOAL_SIM_DEVICES'] ??= String(Math.max(devices, 2))
}
