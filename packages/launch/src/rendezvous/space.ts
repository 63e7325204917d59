/** A request with a later answer. */
export interface Pending {
  readonly rank: number
  readonly id: number
  timer: NodeJS.Timeout | undefined
  /** Removes the request from the list that it waits in. */
  readonly withdraw: () => void
  /** The awaited ranks, numbered in the space. */
  readonly missing: () => number[]
}

/** A barrier or gather in progress. All ranks wait for each other, so each name has one at a time. */
export interface Round {
  readonly values: Map<number, Uint8Array>
  readonly waiting: Map<number, Pending>
  /** Ranks that arrived but cancelled their wait. */
  readonly gaveUp: Set<number>
}

/** One turn of a share: the root's value and the waiting ranks. A string is the root's failure. */
export interface Turn {
  readonly root: number
  value: Uint8Array | string | undefined
  /** Number of ranks that have the value, including the root. */
  taken: number
  readonly waiting: Map<number, Pending>
}

/** The turns of one shared name. The root of a turn does not wait, so ranks may be at different turns. */
export interface Share {
  readonly turns: Map<number, Turn>
  /** The next turn of each rank. */
  readonly next: Map<number, number>
}

/** The ranks of one job object, with separate names and keys: first all ranks, later the survivors. */
export class Space {
  readonly keys = new Map<string, Uint8Array>()
  readonly getters = new Map<string, Set<Pending>>()
  readonly rounds = new Map<string, Round>()
  readonly shares = new Map<string, Share>()
  readonly successors = new Map<number, Pending>()
  /** Ranks that called survivors() but cancelled their wait. */
  readonly gaveUp = new Set<number>()
  readonly id: number
  readonly members: readonly number[]
  /** The number of each rank in this space. */
  readonly #numbers: ReadonlyMap<number, number>
  isClosed = false

  constructor(id: number, members: readonly number[]) {
    this.id = id
    this.members = members
    this.#numbers = new Map(members.map((rank, number) => [rank, number]))
  }

  has(rank: number): boolean {
    return this.#numbers.has(rank)
  }

  /** Converts ranks of the whole job to numbers of this space. */
  local(ranks: Iterable<number>): number[] {
    return [...ranks].map((rank) => this.#numbers.get(rank) ?? -1).sort((a, b) => a - b)
  }
}

/** Returns the requests that wait for the value of a key. */
export function gettersOf(space: Space): Pending[] {
  return [...space.getters.values()].flatMap((waiting) => [...waiting])
}

/** Returns the requests that wait for a barrier or a gather. */
export function roundWaitersOf(space: Space): Pending[] {
  return [...space.rounds.values()].flatMap((round) => [...round.waiting.values()])
}

/** Returns the requests that wait for shares of these roots, or of any root. */
export function shareWaitersOf(space: Space, roots?: ReadonlySet<number>): Pending[] {
  return [...space.shares.values()]
    .flatMap(({ turns }) => [...turns.values()])
    .filter(({ root }) => roots === undefined || roots.has(root))
    .flatMap(({ waiting }) => [...waiting.values()])
}
