/** A request that is answered later. */
export interface Pending {
  readonly rank: number
  readonly id: number
  timer: NodeJS.Timeout | undefined
  /** Forgets that the request was made. */
  readonly withdraw: () => void
  /** Who is waited for, as ranks of the space. */
  readonly missing: () => number[]
}

/** A barrier or a gathering under way. As nobody goes on before all have come, there is one of a name at a time. */
export interface Round {
  readonly values: Map<number, Uint8Array>
  readonly waiting: Map<number, Pending>
  /** Who has come, and not waited until the others had. */
  readonly gaveUp: Set<number>
}

/** One turn of a share: what its root gave, and who waits for it. A string is the root's failure. */
export interface Turn {
  readonly root: number
  value: Uint8Array | string | undefined
  /** How many ranks have had it, its root among them. */
  taken: number
  readonly waiting: Map<number, Pending>
}

/** What is shared under one name. The root of a turn does not wait, so ranks may be at different turns. */
export interface Share {
  readonly turns: Map<number, Turn>
  /** The next turn of each rank. */
  readonly next: Map<number, number>
}

/** The ranks of one job object, with names and keys of their own: first all, later the survivors. */
export class Space {
  readonly keys = new Map<string, Uint8Array>()
  readonly getters = new Map<string, Set<Pending>>()
  readonly rounds = new Map<string, Round>()
  readonly shares = new Map<string, Share>()
  readonly successors = new Map<number, Pending>()
  /** Who has asked for survivors(), and not waited until the others had. */
  readonly gaveUp = new Set<number>()
  readonly id: number
  readonly members: readonly number[]
  /** The number in this space of each rank. */
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

  /** Numbers of this space for ranks of the whole job. */
  local(ranks: Iterable<number>): number[] {
    return [...ranks].map((rank) => this.#numbers.get(rank) ?? -1).sort((a, b) => a - b)
  }
}

/** Requests that wait for the value of a key. */
export function gettersOf(space: Space): Pending[] {
  return [...space.getters.values()].flatMap((waiting) => [...waiting])
}

/** Requests that wait for a barrier or a gathering. */
export function roundWaitersOf(space: Space): Pending[] {
  return [...space.rounds.values()].flatMap((round) => [...round.waiting.values()])
}

/** Requests that wait for what these roots share, or any root. */
export function shareWaitersOf(space: Space, roots?: ReadonlySet<number>): Pending[] {
  return [...space.shares.values()]
    .flatMap(({ turns }) => [...turns.values()])
    .filter(({ root }) => roots === undefined || roots.has(root))
    .flatMap(({ waiting }) => [...waiting.values()])
}
