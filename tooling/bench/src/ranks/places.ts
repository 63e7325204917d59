import { execFileSync } from 'node:child_process'
import { compile } from '../compile.js'
import { allowedProcessors, sharesOf } from './processors.js'

/** Where the threads of one process run. */
export interface Place {
  /** The processor of the main thread, which queues the work, once all have met; without it that one is as the others. */
  readonly front?: number
  /** The processors of all other threads. */
  readonly rest: readonly number[]
}

/**
 * A place in each share whose front is the quietest processor: inside a share the scheduler puts each contestant somewhere
 * else and leaves it there, and one of them may share a core with a busy neighbour of the host.
 */
export function placesIn(shares: readonly (readonly number[])[], times: ReadonlyMap<number, number>): Place[] {
  const timeOf = (processor: number): number => times.get(processor) ?? Number.POSITIVE_INFINITY
  return shares.map((share) => {
    const front = share.reduce((best, one) => (timeOf(one) < timeOf(best) ? one : best))
    return { front, rest: share.filter((one) => one !== front) }
  })
}

/** The places for so many processes, of the processors as quiet as they are now; undefined where there are too few. */
export function findQuietPlaces(processes: number): Place[] | undefined {
  const shares = sharesOf(processes, allowedProcessors())
  return shares === undefined ? undefined : placesIn(shares, quietnessOf(shares.flat()))
}

/** Whole shares, for what is no matter of the thread that queues; undefined where there are too few processors. */
export function findShares(processes: number): Place[] | undefined {
  return sharesOf(processes, allowedProcessors())?.map((rest) => ({ rest }))
}

/** How long the same loop takes on each of the processors, in microseconds. */
export function quietnessOf(processors: readonly number[]): Map<number, number> {
  const program = compile('quiet.c', 'quiet', [])
  // What it says of a failure becomes part of the error.
  const output = execFileSync(program, processors.map(String), { encoding: 'utf8', stdio: 'pipe' })
  const lines = output.trim().split('\n')
  const times = new Map(lines.map((line) => line.split(' ').map(Number) as [number, number]))
  const missing = processors.find((processor) => !Number.isFinite(times.get(processor)))
  if (missing !== undefined) throw new Error(`quiet.c gives no time for processor ${missing}`)
  return times
}

/** The fronts of the processes; none where nothing is bound. */
export function frontsOf(places: readonly Place[] | undefined): number[] {
  return (places ?? []).flatMap(({ front }) => front ?? [])
}

/** One line that says what was bound, by what it was bound for. */
export function describeFronts(fronts: readonly (readonly [string, readonly number[]])[]): string {
  const bound = fronts.filter(([, processors]) => processors.length > 0)
  if (bound.length === 0) return 'No thread is bound to a processor: there are too few of them, or there is no taskset'
  const lists = bound.map(([what, processors]) => `${processors.join(', ')} (${what})`)
  return `Main threads, the same in every contestant, are bound to the quietest processors: ${lists.join('; ')}`
}
