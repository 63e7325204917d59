import { number } from '@shoal/cli/bench'
import type { Device } from '@shoal/driver'
import { atLeast, atMost, type Bar } from '../bars.js'
import { compileWithCuda, writeTemporary } from '../compile.js'
import { aboutDevices, devicesFor } from '../devices.js'
import { startNodeSubjects } from '../nodeSubjects.js'
import type { Outcome, RunOptions } from '../options.js'
import { printMissing, startPython } from '../python.js'
import { SubjectProcess } from '../subjectProcess.js'
import {
  compiled,
  differenceBetween,
  printRows,
  type Row,
  ratioBetween,
  type Subject,
  subjectIn,
  takeTurns,
} from '../turns.js'
import { type CostCase, costCases, kernels, kibibyte, mebibyte, tripBytes } from './cases.js'
import { makeCostLoops } from './loops.js'
import { type Beside, serveBeside } from './server.js'

const wantedTrips = 1000

/**
 * The costs of operations that a program waits for, awaited and blocking, compared with C; and the event loop's delay
 * in the meantime.
 */
export async function benchCosts(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  const most = device.isSoftware
    ? Math.min(options.maximumBytes, mebibyte)
    : Math.min(options.maximumBytes, 256 * mebibyte)
  const cases = costCases(most, device.isSoftware)
  const ptxFile = writeTemporary('costs.ptx', kernels)
  const python = !device.isSoftware && options.python ? await startPython(ptxFile) : undefined
  const [c] = await SubjectProcess.start('costs.c', compileWithCuda('costs.c'), [ptxFile])
  const [again] = await SubjectProcess.start('costs.c', compileWithCuda('costs.c'), [ptxFile])
  const bytesOf = (test: string): number => (cases[test] as CostCase).bytes
  const inC = (
    program: SubjectProcess,
    name: string,
    word: (test: string) => string,
    tests: readonly string[],
  ): Subject => subjectIn(program, name, tests, (test, count) => `${word(test)} ${count} ${bytesOf(test)}`, 1000)
  const names = Object.keys(cases)
  const kindOf = (test: string): string => test.split(' ')[0] ?? test
  const ours = await startNodeSubjects(new URL('subjects.js', import.meta.url), [most])
  const subjects: Subject[] = [
    inC(c, 'C', kindOf, names),
    inC(again, 'C again', kindOf, names),
    inC(
      c,
      'cuMemcpy',
      () => 'driver',
      names.filter((test) => kindOf(test) === 'ordinary'),
    ),
    ...ours.subjects,
    ...(python?.subjects ?? []).map(
      ({ name, cases, measure }): Subject => ({
        name,
        cases: cases.filter((test) => names.includes(test)),
        // These subjects answer in nanoseconds, for bursts of a fixed number of calls.
        measure: async (test) => (await measure(test, 1)) / 1000,
      }),
    ),
  ]
  let rows: Row[]
  try {
    rows = await takeTurns(cases, subjects, options.rounds, compiled)
  } finally {
    for (const program of [c, again, python, ours]) program?.close()
  }
  const beside = await measureBeside(device, most)
  console.log(
    `What a program waits for on ${device.name} (median of rounds, each the best of 5 loops), and the ratio to C\n`,
  )
  printRows(
    rows,
    subjects.map(({ name }) => name),
  )
  if (python !== undefined) printMissing(python.libraries, names)
  console.log(
    `\nan HTTP server on the same event loop as ${number(beside.tripsPerSecond)} round trips a second: median ${number(beside.median)}, ` +
      `99th percentile ${number(beside.percentile99)}, longest ${number(beside.longest)} ms; ` +
      `delay of the loop: 99th percentile ${number(beside.delay.percentile99)}, longest ${number(beside.delay.longest)} ms`,
  )
  const details = { ...aboutDevices([device], options), tripBytes, python: python?.libraries ?? {} }
  return { results: { ...details, cases: rows, beside }, bars: costBars(rows, beside) }
}

/** Measures a server during round trips. Runs in this process, because it measures an event loop with other work. */
async function measureBeside(device: Device, most: number): Promise<Beside> {
  const loops = makeCostLoops(device, most)
  try {
    return await serveBeside(loops.trip, device.isSoftware ? 50 : wantedTrips, device.isSoftware ? 300 : 5000)
  } finally {
    await loops.dispose()
  }
}

/** The limits for Shoal's costs. */
export function costBars(rows: readonly Row[], beside: Beside): Bar[] {
  const rowOf = (test: string): Row | undefined => rows.find((row) => row.case === test)
  const ratio = (test: string, name: string, limit: number, what: string): Bar[] => {
    const row = rowOf(test)
    if (row?.subjects[name] === undefined) return []
    const ofCAgain = ratioBetween(row, 'C again', 'C')
    return [atMost(`${what}, ratio to C`, { value: ratioBetween(row, name, 'C'), ofCAgain }, limit)]
  }
  const large = rows.find((row) => row.case.startsWith('ordinary ') && row.case !== `ordinary ${64 * kibibyte}`)
  const libraries = ['CuPy', 'PyTorch'].flatMap((name) =>
    ['awaited', 'blocking'].flatMap((way): Bar[] => {
      const row = rowOf('pinned')
      if (row?.subjects[name] === undefined) return []
      return [atMost(`round trip, page-locked, ${way}, share of the time of ${name}`, ratioBetween(row, way, name), 1)]
    }),
  )
  return [
    atMost('await of an idle stream, above C', differenceBetween(rowOf('idle'), 'awaited', 'C') * 1000, 1000, ' ns'),
    ...ratio('launch', 'awaited', 1.3, 'launch and await'),
    ...ratio('pinned', 'awaited', 1.25, 'round trip of 64 KiB, page-locked, awaited'),
    ...ratio('pinned', 'blocking', 1.08, 'round trip of 64 KiB, page-locked, blocking'),
    ...libraries,
    ...ratio('ordinary', 'blocking', 1.1, 'round trip of 64 KiB, ordinary memory, blocking'),
    ...(large === undefined ? [] : ratio(large.case, 'blocking', 1.1, 'round trip of much ordinary memory, blocking')),
    ...ratio('inFlight', 'awaited', 1.25, '16 round trips in flight'),
    ...ratio('pool', 'cached', 0.5, 'allocate and free of a caching pool'),
    atLeast('round trips a second beside a server', beside.tripsPerSecond, 0.95 * wantedTrips),
    atMost('answers of that server, 99th percentile', beside.percentile99, 2, ' ms'),
    atMost('event-loop delay meanwhile, 99th percentile', beside.delay.percentile99, 5, ' ms'),
    atMost('event-loop delay meanwhile, longest', beside.delay.longest, 50, ' ms'),
  ]
}
