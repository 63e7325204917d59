import type { Session, SymmetricBuffer } from '@shoal/nvshmem'
import { type BenchOptions, firstRuns } from '../options.js'
import { type Column, figure, row, wrongLine } from '../report/columns.js'
import type { BarDiagram } from '../report/plot.js'
import { repeat, timeOf } from '../timing.js'
import type { NvshmemTest, Pe } from './pes.js'

/** A row of the table of atomics: PE 0 operates on a word of PE 1. */
export interface AtomicRow {
  readonly operation: string
  readonly dtype: string
  /** Microseconds of the form that returns the previous value; null if there is no such form. */
  readonly latency: number | null
  /** Millions per second of the form without a result, back to back with one `quiet`; null if there is no such form. */
  readonly rate: number | null
  /** Whether the word has the correct value; null without a check. */
  readonly right: boolean | null
}

const columns: readonly Column[] = [
  { head: 'operation', unit: '', width: 14 },
  { head: 'type', unit: '', width: 8 },
  { head: 'latency', unit: '(us)', width: 10 },
  { head: 'rate', unit: '(Mops/s)', width: 10 },
  { head: 'result', unit: '', width: 8 },
]

type AtomicType = 'u32' | 'u64'
type Word = SymmetricBuffer<AtomicType>
type Atomics = Session['atomics']
const peer = { pe: 1 }
const before = 6
const value = 5

interface Operation {
  readonly name: string
  /** Returns the previous value. */
  readonly fetching?: (atomics: Atomics, word: Word) => unknown
  readonly plain?: (atomics: Atomics, word: Word) => unknown
  /** Value of the word after `times` operations. */
  readonly after: (times: number) => number
}

const operations: readonly Operation[] = [
  { name: 'fetch', fetching: (atomics, word) => atomics.fetchSync(word, peer), after: () => before },
  { name: 'set', plain: (atomics, word) => atomics.setSync(word, value, peer), after: () => value },
  { name: 'swap', fetching: (atomics, word) => atomics.swapSync(word, value, peer), after: () => value },
  {
    name: 'compare-swap',
    fetching: (atomics, word) => atomics.compareSwapSync(word, before, value, peer),
    after: () => value,
  },
  {
    name: 'increment',
    fetching: (atomics, word) => atomics.fetchIncrementSync(word, peer),
    plain: (atomics, word) => atomics.incrementSync(word, peer),
    after: (times) => before + times,
  },
  {
    name: 'add',
    fetching: (atomics, word) => atomics.fetchAddSync(word, value, peer),
    plain: (atomics, word) => atomics.addSync(word, value, peer),
    after: (times) => before + value * times,
  },
  {
    name: 'and',
    fetching: (atomics, word) => atomics.fetchAndSync(word, value, peer),
    plain: (atomics, word) => atomics.andSync(word, value, peer),
    after: () => before & value,
  },
  {
    name: 'or',
    fetching: (atomics, word) => atomics.fetchOrSync(word, value, peer),
    plain: (atomics, word) => atomics.orSync(word, value, peer),
    after: () => before | value,
  },
  {
    name: 'xor',
    fetching: (atomics, word) => atomics.fetchXorSync(word, value, peer),
    plain: (atomics, word) => atomics.xorSync(word, value, peer),
    after: (times) => (times % 2 === 1 ? before ^ value : before),
  },
]

/** Measures host atomics of PE 0 on a word of PE 1; the other PEs wait. */
export const atomicTest: NvshmemTest = {
  columns,
  async run(pe, options, output) {
    const onRow = (one: AtomicRow): void => output.print(lineOf(one))
    const rows = [...(await measure('u32', pe, options, onRow)), ...(await measure('u64', pe, options, onRow))]
    const wrong = rows.filter(({ right }) => right === false).length
    if (options.check) output.print(wrongLine('results', wrong))
    const diagrams = [
      barsOf(rows, 'latency, with the value before', 'µs', ({ latency }) => latency),
      barsOf(rows, 'rate, without a result', 'millions/s', ({ rate }) => rate),
    ]
    await output.write(rows, { title: 'atomics of PE 0 on a word of PE 1', diagrams }, { wrong })
    return wrong === 0 ? 0 : 1
  },
}

/** Returns bars for the operations with this figure, one bar per type. */
function barsOf(
  rows: readonly AtomicRow[],
  title: string,
  unit: string,
  pick: (row: AtomicRow) => number | null,
): BarDiagram {
  const there = rows.filter((one) => pick(one) !== null)
  const names = [...new Set(there.map(({ operation }) => operation))]
  const bars = [...new Set(there.map(({ dtype }) => dtype))].map((dtype) => ({
    name: dtype,
    values: names.map((name) => {
      const found = there.find((one) => one.operation === name && one.dtype === dtype)
      return found === undefined ? null : pick(found)
    }),
  }))
  return { title, unit, names, bars }
}

function lineOf({ operation, dtype, latency, rate, right }: AtomicRow): string {
  const result = right === null ? 'N/A' : right ? 'OK' : 'WRONG'
  return row(columns, [operation, dtype, ...[latency, rate].map((one) => (one === null ? 'N/A' : figure(one))), result])
}

async function measure(
  dtype: AtomicType,
  { session }: Pe,
  { iterations, warmUps, check }: BenchOptions,
  onRow: (row: AtomicRow) => void,
): Promise<AtomicRow[]> {
  const word: Word = await session.allocate<AtomicType>(dtype, 1)
  await session.barrierAll()
  const rows: AtomicRow[] = []
  if (session.pe === 0) {
    const { atomics } = session
    const quiet = (): void => session.quietSync()
    /** Returns the microseconds of one call, and whether the word is correct afterwards. */
    const time = (operation: Operation, call: (atomics: Atomics, word: Word) => unknown): [number, boolean | null] => {
      session.putElementSync(word, before, peer)
      quiet()
      const loop = repeat(() => call(atomics, word), quiet)
      const microseconds = timeOf(iterations, firstRuns + warmUps, loop)
      const isRight =
        BigInt(session.getElementSync(word, peer)) === BigInt(operation.after(iterations + firstRuns + warmUps))
      return [microseconds, check ? isRight : null]
    }
    for (const operation of operations) {
      const [latency, fetched] = operation.fetching === undefined ? [null, null] : time(operation, operation.fetching)
      const [plain, written] = operation.plain === undefined ? [null, null] : time(operation, operation.plain)
      const row = {
        operation: operation.name,
        dtype,
        latency,
        rate: plain === null ? null : 1 / plain,
        right: check ? fetched !== false && written !== false : null,
      }
      rows.push(row)
      onRow(row)
    }
  }
  await session.barrierAll()
  await word.dispose()
  return rows
}
