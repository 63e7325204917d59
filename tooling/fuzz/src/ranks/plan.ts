/** Ways in which a rank ends or stops. */
export const ways = ['kill', 'stop', 'throw', 'exit'] as const
export type Way = (typeof ways)[number]

/** Operations that the other ranks wait for at that moment. */
export const stages = [
  'bootstrap',
  'barrier',
  'gather',
  'share',
  'get',
  'descriptor',
  'initRank',
  'allReduce',
  'sendReceive',
  'nvshmem',
] as const
export type Stage = (typeof stages)[number]

/**
 * Launchers of the ranks: `shoal run` that lets the other ranks continue, `shoal run` that stops them, and a foreign
 * launcher that has no rendezvous server.
 */
export const launchers = ['continue', 'stop', 'foreign'] as const
export type Launcher = (typeof launchers)[number]

/** One case. The seed determines all of it. */
export interface Plan {
  readonly seed: number
  readonly worldSize: number
  readonly endedRank: number
  readonly way: Way
  readonly stage: Stage
  readonly launcher: Launcher
  /** Milliseconds between the moment when all ranks are ready and the fault. */
  readonly delay: number
  /** Time limit of a wait in milliseconds. If the rank has only stopped, nothing else ends a wait for it. */
  readonly limit: number
}

/** The plan with the additional facts that a rank needs. */
export interface Task extends Plan {
  /** File that appears when all ranks have reported. Until then no rank may leave, because others may still wait. */
  readonly done: string
  readonly socket: string
}

/** A message of a rank: one line of JSON. Times are those of `Date.now`, which all processes of a machine share. */
export interface Line {
  readonly rank: number
  readonly pid?: number
  /** Time just before the fault. Only `endedRank` reports it. */
  readonly faultAt?: number
  /** Begin of the wait that failed, and time of its error. */
  readonly since?: number
  readonly at?: number
  readonly code?: string
  readonly message?: string
  /** The longest time in milliseconds for which this process did not run after `since`. */
  readonly stall?: number
  /** Ranks that the error names. */
  readonly ranks?: readonly number[]
  /** Time at which `job.lost` fired, and the lost ranks. */
  readonly lostAt?: number | undefined
  readonly lostRanks?: readonly number[]
  /** Set if the wait succeeded, which is a failure of the case. */
  readonly unexpected?: string
}

/** Returns a generator of random numbers from 0 to 1 for a seed. */
function numbersOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Milliseconds. A wait takes this long only if it wrongly runs into its limit. */
const longLimit = 120_000

/**
 * Returns the case of a seed. Consecutive seeds go through all combinations of ways and stages before one repeats. The
 * rest is random.
 * @param stoppedLimit - milliseconds after which the other ranks give up a stopped rank
 */
export function planOf(seed: number, stoppedLimit: number): Plan {
  const next = numbersOf(seed)
  const below = (count: number): number => Math.floor(next() * count)
  const way = ways[seed % ways.length] as Way
  const stage = stages[Math.floor(seed / ways.length) % stages.length] as Stage
  const worldSize = 2 + below(7)
  // If a rank exits with status 0 or only stops, a launcher has no failure for which it would stop the others.
  const chosen = launchers[below(launchers.length)] as Launcher
  const launcher = chosen === 'stop' && (way === 'exit' || way === 'stop') ? 'continue' : chosen
  const isSilent = way === 'stop' || (stage === 'bootstrap' && launcher === 'foreign')
  const limit = isSilent ? stoppedLimit : longLimit
  return { seed, worldSize, endedRank: below(worldSize), way, stage, launcher, delay: below(40), limit }
}

/** Returns true if only the limits of their own waits can inform the other ranks of the fault. */
export function isSilent({ way, stage, launcher }: Plan): boolean {
  return way === 'stop' || (stage === 'bootstrap' && launcher === 'foreign')
}

export function describePlan({ seed, worldSize, endedRank, way, stage, launcher }: Plan): string {
  return `seed ${seed}: rank ${endedRank} of ${worldSize}, ${way} in ${stage}, launcher ${launcher}`
}
