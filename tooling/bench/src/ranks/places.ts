import { execFileSync } from 'node:child_process'
import { compile } from '../compile.js'
import { allowedProcessors, sharesOf } from './processors.js'

/** Where the threads of one process run. */
export interface Place {
  /** Processors that are kept free for the main thread, which queues the work; none where it is as the others. */
  readonly candidates: readonly number[]
  /** The candidate that has it, once all have met. */
  front?: number
  /** The processors of all other threads. */
  readonly rest: readonly number[]
}

/** Neighbours come and go: one of so many is quiet most of the time. */
const mostCandidates = 4
/** So many of a share leave it enough for the others. */
const candidatesOfShare = 1 / 4

/**
 * A place in each share, whose quietest processors are the candidates: inside a share the scheduler puts each contestant
 * somewhere else and leaves it there, and one of them may share a core with a busy neighbour of the host.
 */
export function placesIn(shares: readonly (readonly number[])[], times: ReadonlyMap<number, number>): Place[] {
  return shares.map((share) => {
    const count = Math.min(mostCandidates, Math.max(1, Math.floor(share.length * candidatesOfShare)))
    const candidates = byTime(share, times).slice(0, count)
    const [front] = candidates
    const rest = share.filter((processor) => !candidates.includes(processor))
    return { candidates, rest, ...(front === undefined ? {} : { front }) }
  })
}

/** Main threads go to the candidates that are quietest now; to be called while all contestants rest. */
export function findQuietFronts(places: readonly Place[] | undefined, measure = quietnessOf): void {
  const candidates = (places ?? []).flatMap((place) => (place.candidates.length > 1 ? place.candidates : []))
  if (places === undefined || candidates.length === 0) return
  const times = measure(candidates)
  for (const place of places) {
    const [quietest] = byTime(place.candidates, times)
    if (quietest !== undefined) place.front = quietest
  }
}

/** The quietest first; of those that are the same, as they were. */
function byTime(processors: readonly number[], times: ReadonlyMap<number, number>): number[] {
  const timeOf = (processor: number): number => times.get(processor) ?? Number.POSITIVE_INFINITY
  return [...processors].sort((one, other) => timeOf(one) - timeOf(other) || 0)
}

/** The places for so many processes, of the processors as quiet as they are now; undefined where there are too few. */
export function findQuietPlaces(processes: number): Place[] | undefined {
  const shares = sharesOf(processes, allowedProcessors())
  return shares === undefined ? undefined : placesIn(shares, quietnessOf(shares.flat()))
}

/** Whole shares, for what is no matter of the thread that queues; undefined where there are too few processors. */
export function findShares(processes: number): Place[] | undefined {
  return sharesOf(processes, allowedProcessors())?.map((rest) => ({ candidates: [], rest }))
}

let program: string | undefined

/** How long the same loop takes on each of the processors, in microseconds. */
export function quietnessOf(processors: readonly number[]): Map<number, number> {
  program ??= compile('quiet.c', 'quiet', [])
  // What it says of a failure becomes part of the error.
  const output = execFileSync(program, processors.map(String), { encoding: 'utf8', stdio: 'pipe' })
  const lines = output.trim().split('\n')
  const times = new Map(lines.map((line) => line.split(' ').map(Number) as [number, number]))
  const missing = processors.find((processor) => !Number.isFinite(times.get(processor)))
  if (missing !== undefined) throw new Error(`quiet.c gives no time for processor ${missing}`)
  return times
}

/** The candidates of all processes; none where nothing is bound. */
export function frontsOf(places: readonly Place[] | undefined): number[] {
  return (places ?? []).flatMap(({ candidates }) => candidates)
}

/** One line that says what was bound, by what it was bound for. */
export function describeFronts(fronts: readonly (readonly [string, readonly number[]])[]): string {
  const bound = fronts.filter(([, processors]) => processors.length > 0)
  if (bound.length === 0) return 'No thread is bound to a processor: there are too few of them, or there is no taskset'
  const lists = bound.map(([what, processors]) => `${processors.join(', ')} (${what})`)
  return `Main threads, the same in every contestant, are bound to the quietest of these processors: ${lists.join('; ')}`
}
