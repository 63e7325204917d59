// The ways to call every function of a library. Each compares the recorded arguments and the returned results.

import type { FunctionSpec } from '../spec/types.js'
import { type RecorderSymbol, recorderSymbols } from './abi.js'
import { type Job, newReport, type Report } from './job.js'
import { compareArguments, Log, type LogEntry } from './log.js'
import { MemoryPool } from './memory.js'
import { type Codec, type Ffi, koffiOf, type SysFunction, type SysPackage } from './packages.js'
import { Random } from './random.js'
import { loaderFunctions, logLayout } from './recorder.js'
import { compareResult, expectedResult, resultBytes } from './results.js'
import { argumentsFor, type Round, type Value } from './values.js'

const rounds: readonly Round[] = [
  'memory',
  'random',
  'highest',
  'lowest',
  'mixed',
  'mixed',
  'mixed',
  'memory',
  'random',
]

export interface Session {
  readonly job: Job
  readonly ffi: Ffi
  readonly sys: SysPackage
  readonly log: Log
  readonly memory: MemoryPool
  readonly random: Random
  readonly symbols: readonly RecorderSymbol[]
  readonly report: Report
}

export function openSession(job: Job, ffi: Ffi, sys: SysPackage): Session {
  const address = sys.library.rawSymbol('shoal_proof_log')
  if (address === undefined) throw new Error('not a recorder')
  return {
    job,
    ffi,
    sys,
    log: new Log(
      job.engine === 'koffi block'
        ? koffiOf(job).view(address, logLayout.size)
        : ffi.hostView(address, logLayout.size).buffer,
    ),
    memory: new MemoryPool(ffi),
    random: new Random(job.seed),
    symbols: recorderSymbols(job.library ?? job.spec),
    report: newReport(),
  }
}

/** The symbol that a function must call in the job's stream mode. */
export function wantedSymbol(job: Job, entry: FunctionSpec): string {
  return (job.perThread ? entry.perThreadSymbol : undefined) ?? entry.symbol
}

export function codecOf(session: Session, entry: FunctionSpec): Codec | undefined {
  return entry.result.kind === 'struct' ? (session.sys.exports[entry.result.type] as Codec) : undefined
}

export function fail({ report }: Session, entry: FunctionSpec, round: string, what: string): void {
  report.failures.push({ function: entry.name, what: `${round}: ${what}` })
}

/** The entries of the last `count` calls, and the first earlier symbol that does not serve the loader. */
function callsIn(session: Session, count: number): { entries: LogEntry[]; unexpected: string | undefined } {
  const entries = session.log.entries()
  const early = entries.slice(0, Math.max(0, entries.length - count))
  const loader = loaderFunctions(session.job.spec.library)
  const names = early.map(({ id }) => session.symbols[id]?.symbol ?? `function ${id}`)
  return { entries: entries.slice(early.length), unexpected: names.find((name) => !loader.includes(name)) }
}

export function compareCall(
  session: Session,
  entry: FunctionSpec,
  round: string,
  values: readonly Value[],
  logged: LogEntry | undefined,
): void {
  const wanted = wantedSymbol(session.job, entry)
  const differences =
    logged === undefined ? ['nothing was entered'] : compareArguments(entry, values, logged, session.symbols, wanted)
  for (const difference of differences) fail(session, entry, round, difference)
}

function isLoaderFunction(session: Session, entry: FunctionSpec): boolean {
  return loaderFunctions(session.job.spec.library).includes(entry.symbol)
}

/** Calls one function once, through `call`. */
export function callOnce(
  session: Session,
  entry: FunctionSpec,
  round: Round,
  isFirst: boolean,
  call: (values: readonly Value[]) => unknown,
): void {
  const { log, random, memory, report } = session
  const values = argumentsFor(entry, round, random, memory)
  const bytes = resultBytes(entry, round, random)
  const codec = codecOf(session, entry)
  log.clear()
  log.set(round === 'memory', isFirst)
  log.setResult(bytes)
  let returned: unknown
  try {
    returned = call(values)
  } catch (error) {
    fail(session, entry, round, String(error))
    return
  }
  report.calls++
  report.arguments += values.length
  const { entries, unexpected } = callsIn(session, 1)
  if (unexpected !== undefined) fail(session, entry, round, `${unexpected} was entered too`)
  compareCall(session, entry, round, values, entries[0])
  // A call that served the loader returned the loader's result, not the test's.
  if (isFirst && isLoaderFunction(session, entry)) return
  const difference = compareResult(expectedResult(entry.result, bytes, codec), returned)
  if (difference !== undefined) fail(session, entry, round, difference)
}

/** Calls every function through its generated wrapper. The first call of each also resolves it. */
export function runBlock(session: Session): void {
  const { job, sys, report } = session
  for (const entry of job.spec.functions) {
    const wrapper = sys.exports[entry.name] as SysFunction | undefined
    if (wrapper === undefined) {
      fail(session, entry, 'all rounds', 'is not exported')
      continue
    }
    rounds.forEach((round, index) => {
      callOnce(session, entry, round, index === 0, (values) => wrapper(...values.map(({ js }) => js)))
    })
    report.functions.push(entry.name)
  }
}

const batchSize = 50

/**
 * Records a call of every function for another thread, through its generated wrapper. Each is resolved while recording.
 */
export async function runRecording(session: Session): Promise<void> {
  const { job, report } = session
  for (const round of ['native', 'random', 'highest', 'lowest', 'mixed'] as const) {
    for (let first = 0; first < job.spec.functions.length; first += batchSize)
      await recordBatch(session, job.spec.functions.slice(first, first + batchSize), round)
  }
  report.functions.push(...job.spec.functions.map(({ name }) => name))
}

async function recordBatch(session: Session, batch: readonly FunctionSpec[], round: Round): Promise<void> {
  const { log, random, memory, report, sys, ffi } = session
  const where = `recorded, ${round}`
  const recorded: { entry: FunctionSpec; values: Value[] }[] = []
  log.clear()
  log.set(round === 'native', round === 'native')
  // All calls of the batch get the same bytes as a result, and each reads them as its own kind.
  const bytes = random.bytes(512)
  bytes[0] = random.below(2)
  log.setResult(bytes)
  const values = await ffi.offThread({ stopOnError: false, results: 'value' }, () => {
    for (const entry of batch) {
      const handed = argumentsFor(entry, round, random, memory)
      const wrapper = sys.exports[entry.name] as SysFunction | undefined
      try {
        if (wrapper === undefined) throw new Error('is not exported')
        wrapper(...handed.map(({ js }) => js))
        recorded.push({ entry, values: handed })
      } catch (error) {
        fail(session, entry, where, String(error))
      }
    }
    log.set(round === 'native', false)
  })
  const { entries, unexpected } = callsIn(session, recorded.length)
  // If calls are missing, the entries of the other calls still are in order.
  const isComplete = entries.length === recorded.length
  let next = 0
  for (const [index, { entry, values: handed }] of recorded.entries()) {
    report.calls++
    report.arguments += handed.length
    if (unexpected !== undefined) fail(session, entry, where, `${unexpected} was entered too`)
    const isNext = session.symbols[entries[next]?.id ?? -1]?.symbol === wantedSymbol(session.job, entry)
    compareCall(session, entry, where, handed, isComplete || isNext ? entries[next++] : undefined)
    const { result } = entry
    const expected = result.kind === 'struct' ? bytes.slice(0, result.size) : expectedResult(result, bytes, undefined)
    const difference = compareResult(expected, values[index])
    if (difference !== undefined) fail(session, entry, where, difference)
  }
}
