import { nvshmemVersion } from '@shoal/nvshmem'
import { UsageError } from '../../command.js'
import type { BenchOptions } from '../options.js'
import { headLines } from '../report/columns.js'
import { Output } from '../report/output.js'
import { atomicTest } from './atomics.js'
import { barrierTest } from './barriers.js'
import { joinAsPe, type NvshmemTest, runAsPe, startPes } from './pes.js'
import { transferTest } from './transfers.js'

const tests: { readonly [name: string]: NvshmemTest } = {
  put: transferTest('put'),
  get: transferTest('get'),
  atomic: atomicTest,
  barrier: barrierTest,
}

export const nvshmemTests = Object.keys(tests)

/** Measures NVSHMEM as a rank of a job. Without a job it starts the PEs and returns their exit status. */
export async function benchNvshmem(options: BenchOptions, commandLine: readonly string[]): Promise<number> {
  const rankGroup = await joinAsPe(options)
  if (rankGroup === undefined) return await startPes(commandLine, options)
  try {
    if (rankGroup.worldSize < 2 && options.test !== 'barrier') {
      throw new UsageError(`${options.test} is between two PEs: this job has one rank`)
    }
    const test = tests[options.test] as NvshmemTest
    const library = { name: 'NVSHMEM', version: nvshmemVersion().toString() }
    const output = await Output.open(rankGroup, library, options, headLines(test.columns))
    return await runAsPe(options, rankGroup, (pe) => test.run(pe, options, output))
  } finally {
    await rankGroup.leave()
  }
}
