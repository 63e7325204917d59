import { execFileSync } from 'node:child_process'
import { compile } from '../compile.js'
import { allowedProcessors, sharesOf } from './processors.js'

/** The processors of one process. */
export interface Placement {
  /**
   * Processors of which the main thread, which queues the work, gets one for itself; none where it shares with the
   * others.
   */
  readonly candidates: readonly number[]
  /** The candidate that the main thread is bound to. */
  mainThread?: number
  /** The processors of all other threads. */
  readonly others: readonly number[]
}

/** Of so many processors one is idle most of the time, whatever else runs on the host. */
const mostCandidates = 4
/** The part of a share that may be candidates. */
const candidatesOfShare = 1 / 4

/**
 * A placement in each share, with its most idle processors as candidates. Left alone, the operating system puts the
 * main thread of each subject on another processor, and the core of one of them may be busy with another guest of the
 * host.
 */
export function placementsIn(shares: readonly (readonly number[])[], times: ReadonlyMap<number, number>): Placement[] {
  return shares.map((share) => {
    const count = Math.min(mostCandidates, Math.max(1, Math.floor(share.length * candidatesOfShare)))
    const candidates = byTime(share, times).slice(0, count)
    const [mainThread] = candidates
    const others = share.filter((processor) => !candidates.includes(processor))
    return { candidates, others, ...(mainThread === undefined ? {} : { mainThread }) }
  })
}

/** Chooses the most idle candidate for each main thread. All subjects have to be suspended. */
export function chooseIdleProcessors(placements: readonly Placement[] | undefined, measure = measureLoopTimes): void {
  const candidates = (placements ?? []).flatMap((placement) =>
    placement.candidates.length > 1 ? placement.candidates : [],
  )
  if (placements === undefined || candidates.length === 0) return
  const times = measure(candidates)
  for (const placement of placements) {
    const [fastest] = byTime(placement.candidates, times)
    if (fastest !== undefined) placement.mainThread = fastest
  }
}

/** By the time of the loop; equal ones stay in order. */
function byTime(processors: readonly number[], times: ReadonlyMap<number, number>): number[] {
  const timeOf = (processor: number): number => times.get(processor) ?? Number.POSITIVE_INFINITY
  return [...processors].sort((one, other) => timeOf(one) - timeOf(other) || 0)
}

/**
 * Placements for so many processes, with the processors that are idle now as candidates; undefined where there are too
 * few.
 */
export function findPlacements(processes: number): Placement[] | undefined {
  const shares = sharesOf(processes, allowedProcessors())
  return shares === undefined ? undefined : placementsIn(shares, measureLoopTimes(shares.flat()))
}

/** Placements that bind no main thread; undefined where there are too few processors. */
export function findShares(processes: number): Placement[] | undefined {
  return sharesOf(processes, allowedProcessors())?.map((others) => ({ candidates: [], others }))
}

/** Microseconds that the same loop takes on each of the processors. */
export function measureLoopTimes(processors: readonly number[]): Map<number, number> {
  // With stderr in a pipe, it becomes part of the error.
  const output = execFileSync(compile('idle.c'), processors.map(String), { encoding: 'utf8', stdio: 'pipe' })
  const lines = output.trim().split('\n')
  const times = new Map(lines.map((line) => line.split(' ').map(Number) as [number, number]))
  const missing = processors.find((processor) => !Number.isFinite(times.get(processor)))
  if (missing !== undefined) throw new Error(`idle.c gives no time for processor ${missing}`)
  return times
}

/** The candidates of all processes; none where nothing is bound. */
export function mainThreadProcessors(placements: readonly Placement[] | undefined): number[] {
  return (placements ?? []).flatMap(({ candidates }) => candidates)
}

/** One line that says which processors were used, by what they were used for. */
export function describeProcessors(used: readonly (readonly [string, readonly number[]])[]): string {
  const bound = used.filter(([, processors]) => processors.length > 0)
  if (bound.length === 0) return 'No thread is bound to a processor: there are too few of them, or there is no taskset'
  const lists = bound.map(([what, processors]) => `${processors.join(', ')} (${what})`)
  return `Main threads of all subjects are bound to the most idle of these processors: ${lists.join('; ')}`
}
