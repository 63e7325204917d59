import { callsPerBurst, emptyKernels } from '@shoal/cli/bench'
import type { Device } from '@shoal/driver'
import { atMost, type Bar } from './bars.js'
import { compileWithCuda, writeTemporary } from './compile.js'
import { aboutDevices, devicesFor } from './devices.js'
import { startNodeSubjects } from './nodeSubjects.js'
import type { Outcome, RunOptions } from './options.js'
import { type PythonLibraries, printMissing, startPython } from './python.js'
import { SubjectProcess } from './subjectProcess.js'
import {
  type Case,
  compiled,
  differenceBetween,
  printRows,
  type Row,
  type Subject,
  subjectIn,
  takeTurns,
} from './turns.js'

const burstsPerLoop = 20
const titles: Readonly<Record<string, string>> = {
  launch0: 'cuLaunchKernel, no argument',
  launch4: 'cuLaunchKernel, 4 arguments',
  copy: 'cuMemcpyDtoDAsync, 1 KiB',
  fill: 'cuMemsetD8Async, 1 KiB',
  record: 'cuEventRecord',
  query: 'cuStreamQuery',
  pool: 'cuMemAllocAsync + cuMemFreeAsync, 4 KiB',
  current: 'cuCtxGetCurrent',
}

/** Times of driver calls. */
export interface CallFigures {
  readonly rows: readonly Row[]
  /** The subjects, in column order. */
  readonly names: readonly string[]
  readonly python: PythonLibraries
}

/** Calls of the CUDA driver: in C, through the raw package, through the driver package, and in Python. */
export async function benchGpu(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  const { rows, names, python } = await measureCalls(device, options, Object.keys(titles))
  console.log('Calls of the CUDA driver (median of rounds, each the best of 5 loops), and the ratio to C\n')
  printCalls({ rows, names, python })
  if (device.isSoftware) console.log('without launches: those of the software device are computed here')
  const details = { ...aboutDevices([device], options), callsPerBurst, python }
  return { results: { ...details, cases: rows }, bars: device.isSoftware ? [] : callBars(rows) }
}

/** The limits for the cost of a call compared with C. */
export function callBars(rows: readonly Row[]): Bar[] {
  const rowOf = (test: string): Row | undefined => rows.find((row) => row.case === test)
  const launches = [
    ['driver', '4-argument launch through the driver package', 1.05],
    ['prepared', 'the same, prepared', 1.02],
  ] as const
  // A pair of calls counts twice.
  const short = { fill: 1, record: 1, query: 1, pool: 2 }
  return [
    ...launches.flatMap(([name, what, limit]) => {
      const ratio = rowOf('launch4')?.ratioToC[name]
      return ratio === undefined ? [] : [atMost(`${what}, ratio to C`, ratio, limit)]
    }),
    ...Object.entries(short).flatMap(([test, calls]) => {
      const row = rowOf(test)
      if (row === undefined) return []
      return [atMost(`${row.title}, each call above C`, differenceBetween(row, 'driver', 'C') / calls, 80, ' ns')]
    }),
  ]
}

/** Measures some of the cases. On the software device, skips launches and Python. */
export async function measureCalls(
  device: Device,
  options: RunOptions,
  wanted: readonly string[],
): Promise<CallFigures> {
  const ptxFile = device.isSoftware ? undefined : writeTemporary('empty.ptx', emptyKernels)
  const [c, readyLine] = await SubjectProcess.start('calls.c', compileWithCuda('calls.c'), [ptxFile ?? '-'])
  const ours = await startNodeSubjects(new URL('gpuSubjects.js', import.meta.url), [ptxFile ?? '-'])
  const python = ptxFile !== undefined && options.python ? await startPython(ptxFile) : undefined
  const subjects: Subject[] = [
    subjectIn(c, 'C', readyLine.split(' ').slice(1), (test, bursts) => `${test} ${bursts} ${callsPerBurst}`),
    ...ours.subjects,
    ...(python?.subjects ?? []),
  ]
  const caseOf = (test: string): Case => ({ title: titles[test] ?? test, unit: 'ns', count: burstsPerLoop, loops: 5 })
  const rows = await takeTurns(
    Object.fromEntries(wanted.map((test) => [test, caseOf(test)])),
    subjects,
    options.rounds,
    compiled,
  )
  c.close()
  ours.close()
  python?.close()
  return { rows, names: subjects.map(({ name }) => name), python: python?.libraries ?? {} }
}

/** Prints the rows, and the cases that Python cannot run. */
export function printCalls({ rows, names, python }: CallFigures): void {
  printRows(rows, names)
  printMissing(
    python,
    rows.map((row) => row.case),
  )
}
