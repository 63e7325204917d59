/** How a rank ends, or seems to. */
export const ways = ['kill', 'stop', 'throw', 'exit'] as const
export type Way = (typeof ways)[number]

/** What the others wait for when it does. */
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
 * Who starts the ranks: `shoal run` that lets the others go on, or ends them, or a launcher that serves no rendezvous.
 */
export const launchers = ['continue', 'stop', 'foreign'] as const
export type Launcher = (typeof launchers)[number]

/** One case. All of it follows from the seed. */
export interface Plan {
  readonly seed: number
  readonly worldSize: number
  readonly endedRank: number
  readonly way: Way
  readonly stage: Stage
  readonly launcher: Launcher
  /** Milliseconds from the moment when all are there until it happens. */
  readonly delay: number
  /** Milliseconds that a wait may take: the only thing that ends a wait for a rank that stands still. */
  readonly limit: number
}

/** What a rank is told beside. */
export interface Task extends Plan {
  /** Appears when all have reported, so that none leaves while others still wait. */
  readonly done: string
  readonly socket: string
}

/** What a rank says, a line of JSON each. Times are those of `Date.now`, which all processes of a machine share. */
export interface Line {
  readonly rank: number
  readonly pid?: number
  /** The endedRank, right before it. */
  readonly faultAt?: number
  /** When the wait began that ended with an error, and when it did. */
  readonly since?: number
  readonly at?: number
  readonly code?: string
  readonly message?: string
  /** The longest time in milliseconds for which this process was not run, from then on. */
  readonly stall?: number
  /** Ranks that the error names. */
  readonly ranks?: readonly number[]
  /** When `job.lost` fired, and for whom. */
  readonly lostAt?: number | undefined
  readonly lostRanks?: readonly number[]
  /** The wait ended well, which it must not. */
  readonly unexpected?: string
}

/** The numbers of a seed, each from 0 to 1. */
function numbersOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Milliseconds that no wait of these ranks takes, unless it waits for its own limit and should not. */
const longLimit = 120_000

/**
 * The case of a seed. Seeds in a row go through all ways and stages before one comes again, and draw the rest.
 * @param stoppedLimit - milliseconds after which the others give up a rank that stands still
 */
export function planOf(seed: number, stoppedLimit: number): Plan {
  const next = numbersOf(seed)
  const below = (count: number): number => Math.floor(next() * count)
  const way = ways[seed % ways.length] as Way
  const stage = stages[Math.floor(seed / ways.length) % stages.length] as Stage
  const worldSize = 2 + below(7)
  // One that ends well, or stands still, is no failure for a launcher to end the others for.
  const chosen = launchers[below(launchers.length)] as Launcher
  const launcher = chosen === 'stop' && (way === 'exit' || way === 'stop') ? 'continue' : chosen
  const isSilent = way === 'stop' || (stage === 'bootstrap' && launcher === 'foreign')
  const limit = isSilent ? stoppedLimit : longLimit
  return { seed, worldSize, endedRank: below(worldSize), way, stage, launcher, delay: below(40), limit }
}

/** Whether only the limit of their own waits can tell the others. */
export function isSilent({ way, stage, launcher }: Plan): boolean {
  return way === 'stop' || (stage === 'bootstrap' && launcher === 'foreign')
}

export function describePlan({ seed, worldSize, endedRank, way, stage, launcher }: Plan): string {
  return `seed ${seed}: rank ${endedRank} of ${worldSize}, ${way} in ${stage}, launcher ${launcher}`
}
