import { UsageError } from '../../command.js'
import type { BenchOptions } from '../options.js'
import type { Party } from '../party.js'
import { benchAtomic } from './atomics.js'
import { benchBarrier } from './barriers.js'
import { joinPes, startPes } from './pes.js'
import { benchTransfer } from './transfers.js'

const tests: { readonly [name: string]: (party: Party, options: BenchOptions) => Promise<number> } = {
  put: (party, options) => benchTransfer('put', party, options),
  get: (party, options) => benchTransfer('get', party, options),
  atomic: benchAtomic,
  barrier: benchBarrier,
}

export const nvshmemTests = Object.keys(tests)

/** Measures NVSHMEM as a rank of a job; started alone it starts the PEs, and gives their exit status. */
export async function benchNvshmem(options: BenchOptions, commandLine: readonly string[]): Promise<number> {
  const party = await joinPes(options)
  if (party === undefined) return await startPes(commandLine, options)
  try {
    if (party.worldSize < 2 && options.test !== 'barrier') {
      throw new UsageError(`${options.test} is between two PEs: this job has one rank`)
    }
    return await (tests[options.test] as (party: Party, options: BenchOptions) => Promise<number>)(party, options)
  } finally {
    await party.leave()
  }
}
