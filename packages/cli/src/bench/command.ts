import type { Command } from '../command.js'
import { benchCollective } from './collectives/bench.js'
import { operations } from './collectives/operations.js'
import { type BenchOptions, readOptions, usage } from './options.js'

const tests: { readonly [name: string]: (options: BenchOptions) => Promise<number> } = Object.fromEntries(
  operations.map((operation) => [operation.name, (options) => benchCollective(operation, options)]),
)

export const benchCommand: Command = {
  usage,
  async run(commandLine) {
    const options = readOptions(commandLine, Object.keys(tests))
    // Before any library is looked for.
    if (options.software) prepareSoftwareDevice(options)
    return await (tests[options.test] as (options: BenchOptions) => Promise<number>)(options)
  },
}

/** Sets the environment for the software device, which reads it when it is loaded. */
function prepareSoftwareDevice({ devices }: BenchOptions): void {
  process.env['SHOAL_DEVICE'] = 'sim'
  if (devices !== undefined) process.env['SHOAL_SIM_DEVICES'] ??= String(Math.max(devices, 2))
}
