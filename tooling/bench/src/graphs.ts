import type { Device } from '@shoal/driver'
import { atMost, type Bar } from './bars.js'
import { compileWithCuda, writeTemporary } from './compile.js'
import { aboutDevices, devicesFor } from './devices.js'
import { startNodeSubjects } from './nodeSubjects.js'
import type { Outcome, RunOptions } from './options.js'
import { SubjectProcess } from './subjectProcess.js'
import { type Case, compiled, printRows, ratioBetween, subjectIn, takeTurns } from './turns.js'

/** The number of kernels in a graph. */
export const nodeCount = 1000
/** The number of copies in a batch. */
export const copyCount = 1000

export const kernels = `.version 6.4
.target sm_52
.address_size 64
.visible .entry empty0() { ret; }
.visible .entry empty64(.param .align 8 .b8 block[64]) { ret; }
`

const titles: Readonly<Record<string, string>> = {
  launch: `cuGraphLaunch of ${nodeCount} kernels`,
  build: `a graph of ${nodeCount} kernels, built and destroyed`,
  instantiate: `cuGraphInstantiate of ${nodeCount} kernels, and its end`,
  cluster: 'cuLaunchKernelEx, clusters of 2',
  cooperative: 'cuLaunchKernelEx, cooperative',
  struct: 'cuLaunchKernel, a struct of 64 bytes',
  object: 'the same, encoded from an object each time',
  copies: `cuMemcpyBatchAsync, ${copyCount} × 4 KiB`,
}
/** The maximum time ratio to C for each case. */
const limits: Readonly<Record<string, number>> = {
  launch: 1.01,
  build: 2,
  cluster: 1.05,
  cooperative: 1.05,
  struct: 1.05,
  copies: 1.05,
}

/**
 * Graphs, launches with attributes and structs, and batched copies: in C, through the driver package, and through the
 * bound C function with prepared arguments.
 */
export async function benchGraphs(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  const program = compileWithCuda('graphs.c')
  const ptxFile = writeTemporary('graphs.ptx', kernels)
  // A second copy of the C program shows the noise floor.
  const inC = await Promise.all(
    ['C', 'C again'].map(async (name) => {
      const words = [ptxFile, String(nodeCount), String(copyCount)]
      const [process, readyLine] = await SubjectProcess.start(name, program, words)
      // In C, a struct is always bytes, so `object` uses the same case.
      const cases = [...readyLine.split(' ').slice(1), 'object']
      const requestFor = (test: string, count: number) => `${test === 'object' ? 'struct' : test} ${count}`
      return { process, subject: subjectIn(process, name, cases, requestFor) }
    }),
  )
  const ours = await startNodeSubjects(new URL('graphsSubjects.js', import.meta.url), [options.rounds])
  const rows = await takeTurns(
    Object.fromEntries(
      Object.entries(titles).map(([test, title]): [string, Case] => [test, { title, unit: 'ns', count: 10, loops: 5 }]),
    ),
    [...inC.map(({ subject }) => subject), ...ours.subjects],
    options.rounds,
    compiled,
  )
  for (const { process } of inC) process.close()
  ours.close()
  console.log(
    'Graphs, launches with attributes, many copies (median of rounds, each the best of 5 loops), and the ratio to C\n',
  )
  printRows(rows, ['C', 'driver', 'bare call', 'C again'])
  const bars = rows.flatMap((row): Bar[] => {
    const [limit, value] = [limits[row.case], row.ratioToC['driver']]
    if (limit === undefined || value === undefined) return []
    return [atMost(`${row.title}, ratio to C`, { value, ofCAgain: ratioBetween(row, 'C again', 'C') }, limit)]
  })
  return { results: { ...aboutDevices([device], options), nodeCount, copyCount, cases: rows }, bars }
}
