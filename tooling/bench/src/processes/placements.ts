import { execFileSync } from 'node:child_process'
import { compile } from '../compile.js'
import { allowedProcessors, sharesOf } from './processors.js'

/** The processors of one process. */
export interface Placement {
  /**
   * Candidates for the main thread, which queues the work and gets one of them exclusively. Empty if the main thread
   * shares the processors of the other threads.
   */
  readonly candidates: readonly number[]
  /** The candidate that the main thread is bound to. */
  mainThread?: number
  /** The processors of all other threads. */
  readonly others: readonly number[]
}

/** Of this number of processors, at least one is usually idle, whatever else runs on the host. */
const mostCandidates = 4
/** The fraction of a share that may be candidates. */
const candidatesOfShare = 1 / 4

/**
 * A placement in each share, with the most idle processors as candidates. Otherwise the operating system would put each
 * subject's main thread on another processor, and another guest of the host may use the core of one of them.
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

/** Chooses the most idle candidate for each main thread. All subjects must be suspended. */
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

/** Sorted by the time of the loop. Processors with equal times keep their order. */
function byTime(processors: readonly number[], times: ReadonlyMap<number, number>): number[] {
  const timeOf = (processor: number): number => times.get(processor) ?? Number.POSITIVE_INFINITY
  return [...processors].sort((one, other) => timeOf(one) - timeOf(other) || 0)
}

/**
 * Placements for this number of processes, with processors that are idle now as candidates. Undefined if there are too
 * few processors.
 */
export function findPlacements(processes: number): Placement[] | undefined {
  const shares = sharesOf(processes, allowedProcessors())
  return shares === undefined ? undefined : placementsIn(shares, measureLoopTimes(shares.flat()))
}

/** Placements without bound main threads; undefined if there are too few processors. */
export function findShares(processes: number): Placement[] | undefined {
  return sharesOf(processes, allowedProcessors())?.map((others) => ({ candidates: [], others }))
}

/** The microseconds of the same loop on each processor. */
export function measureLoopTimes(processors: readonly number[]): Map<number, number> {
  // With stderr in a pipe, its text becomes part of the error.
  const output = execFileSync(compile('idle.c'), processors.map(String), { encoding: 'utf8', stdio: 'pipe' })
  const lines = output.trim().split('\n')
  const times = new Map(lines.map((line) => line.split(' ').map(Number) as [number, number]))
  const missing = processors.find((processor) => !Number.isFinite(times.get(processor)))
  if (missing !== undefined) throw new Error(`idle.c gives no time for processor ${missing}`)
  return times
}

/** The candidates of all processes; empty if nothing is bound. */
export function mainThreadProcessors(placements: readonly Placement[] | undefined): number[] {
  return (placements ?? []).flatMap(({ candidates }) => candidates)
}

/** A line that lists the used processors by purpose. */
export function describeProcessors(used: readonly (readonly [string, readonly number[]])[]): string {
  const bound = used.filter(([, processors]) => processors.length > 0)
  if (bound.length === 0) return 'No thread is bound to a processor: there are too few of them, or there is no taskset'
  const lists = bound.map(([what, processors]) => `${processors.join(', ')} (${what})`)
  return `Main threads of all subjects are bound to the most idle of these processors: ${lists.join('; ')}`
}
