import { checkedValue, integerOf, nameOf, textOf } from './fields.js'
import { type Header, noBytes } from './frames.js'
import { gettersOf, type Pending, roundWaitersOf, type Share, Space, shareWaitersOf, type Turn } from './space.js'

/** Sends to one rank. */
export type Send = (header: Header, body?: Uint8Array) => void

/** Most ranks of a job, because each rank takes memory. */
export const mostRanks: number = 2 ** 20

/** How a rank went: it left, its program ended normally without leaving, or its connection ended. */
type Going = 'left' | 'ended' | 'lost'
type Presence = 'absent' | 'joined' | Going

interface Member {
  presence: Presence
  send: Send | undefined
  host: string
  /** Pending requests of this rank, by number. */
  readonly pending: Map<number, Pending>
}

type Failure =
  | { readonly kind: 'timeout'; readonly ranks: readonly number[]; readonly message?: string }
  | { readonly kind: 'lost' | 'left'; readonly ranks: readonly number[] }
  | { readonly kind: 'refused'; readonly message: string }

/** State of the ranks and the answers to their requests. The server owns the connections. */
export class RendezvousState {
  readonly #members: Member[]
  readonly #spaces = new Map<number, Space>()
  readonly #joining = new Map<number, Pending>()
  #nextSpace = 1
  /** Number of ranks that have gone or will not come. While it is 0, no search for them is necessary. */
  #gone = 0
  #isComplete = false
  /** Why ranks cannot join any more. */
  #contest: Failure | undefined
  /** Descriptions of refused connections that claimed to be missing ranks, by rank. */
  readonly #turnedAway = new Map<number, string>()

  constructor(worldSize: number) {
    this.#members = Array.from({ length: worldSize }, () => ({
      presence: 'absent',
      send: undefined,
      host: '',
      pending: new Map(),
    }))
    this.#spaces.set(0, new Space(0, [...this.#members.keys()]))
  }

  /** Drops all requests, because their timers would keep the process alive. */
  dispose(): void {
    for (const { pending } of this.#members) for (const one of [...pending.values()]) this.#drop(one)
  }

  get worldSize(): number {
    return this.#members.length
  }

  /** True if all ranks have joined. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Ends an incomplete job that may contain ranks of another job. */
  contest(message: string): void {
    if (this.#isComplete) return
    this.#contest ??= { kind: 'refused', message }
    for (const pending of [...this.#joining.values()]) this.#fail(pending, this.#contest)
  }

  /** Records a refused connection that claimed this rank, for later errors. */
  turnedAway(rank: number, words: string): void {
    this.#turnedAway.set(rank, words)
  }

  presenceOf(rank: number): Presence {
    return this.#member(rank).presence
  }

  connected(rank: number, send: Send): void {
    const member = this.#member(rank)
    member.presence = 'joined'
    member.send = send
  }

  /**
   * Records ranks that will not come or not return.
   *
   * Pass simultaneous losses together: each remaining rank then gets one message for all of them.
   */
  gone(ranks: number | readonly number[], how: Going): void {
    const fresh = [...new Set(typeof ranks === 'number' ? [ranks] : ranks)].filter((rank) => !this.#isGone(rank))
    if (fresh.length === 0) return
    for (const rank of fresh) {
      const member = this.#member(rank)
      member.presence = how
      member.send = undefined
      this.#gone += 1
      for (const pending of [...member.pending.values()]) this.#drop(pending)
    }
    for (const pending of [...this.#joining.values()]) this.#fail(pending, failureFor(how, [...fresh].sort(ascending)))
    for (const space of [...this.#spaces.values()]) {
      const members = fresh.filter((rank) => space.has(rank))
      if (members.length > 0) this.#goneFrom(space, members, how)
    }
  }

  /** Handles a message. @throws TypeError, RangeError for a message that no Shoal client sends */
  received(rank: number, header: Header, body: Uint8Array): void {
    const { op } = header
    if (op === 'cancel') {
      const pending = this.#member(rank).pending.get(integerOf(header, 'id'))
      if (pending !== undefined) this.#drop(pending)
      return
    }
    if (op === 'join') {
      this.#join(rank, header)
      return
    }
    const space = this.#spaces.get(integerOf(header, 'space'))
    if (space === undefined || !space.has(rank)) throw new RangeError('no such space')
    if (space.isClosed) {
      this.#answer(rank, integerOf(header, 'id'), { kind: 'refused', message: 'survivors() has ended this job' })
      return
    }
    if (op === 'set') this.#set(space, rank, header, body)
    else if (op === 'get') this.#get(space, rank, header)
    else if (op === 'barrier' || op === 'gather') this.#collect(space, rank, header, body, op)
    else if (op === 'share') this.#share(space, rank, header, body)
    else if (op === 'survivors') this.#formSuccessor(space, rank, header)
    else throw new TypeError('no such operation')
  }

  #join(rank: number, header: Header): void {
    this.#member(rank).host = textOf(header, 'host')
    const missing = () => this.#ranksThat('absent')
    this.#wait(
      rank,
      header,
      missing,
      () => this.#joining.delete(rank),
      (pending) => this.#joining.set(rank, pending),
    )
    const gone = this.#contest ?? this.#failureOf(this.#spaceOfAll, undefined)
    if (gone !== undefined) {
      for (const pending of [...this.#joining.values()]) this.#fail(pending, gone)
      return
    }
    if (this.#joining.size < this.worldSize) return
    this.#isComplete = true
    const nodes = new Map<string, number>()
    const numbers = this.#members.map(({ host }) => {
      const node = nodes.get(host) ?? nodes.size
      nodes.set(host, node)
      return node
    })
    // In the body, which all ranks share; a list in the header would be encoded again for each rank.
    const body = Buffer.alloc(4 * numbers.length)
    for (const [rank, node] of numbers.entries()) body.writeUInt32LE(node, 4 * rank)
    for (const pending of [...this.#joining.values()]) this.#finish(pending, {}, body)
  }

  #set(space: Space, rank: number, header: Header, body: Uint8Array): void {
    const key = nameOf(header, 'name')
    space.keys.set(key, checkedValue(body))
    this.#send(rank, { id: integerOf(header, 'id') })
    for (const pending of [...(space.getters.get(key) ?? [])]) this.#finish(pending, {}, body)
  }

  #get(space: Space, rank: number, header: Header): void {
    const key = nameOf(header, 'name')
    const value = space.keys.get(key)
    if (value !== undefined) {
      this.#send(rank, { id: integerOf(header, 'id') }, value)
      return
    }
    const failure = this.#mayNeverBeSet(space) ? this.#failureOf(space, undefined) : undefined
    if (failure !== undefined) {
      this.#answer(rank, integerOf(header, 'id'), failure)
      return
    }
    const waiting = space.getters.get(key) ?? new Set()
    space.getters.set(key, waiting)
    this.#wait(
      rank,
      header,
      () => [],
      (pending) => {
        waiting.delete(pending)
        if (waiting.size === 0 && space.getters.get(key) === waiting) space.getters.delete(key)
      },
      (pending) => waiting.add(pending),
    )
  }

  #collect(space: Space, rank: number, header: Header, body: Uint8Array, kind: 'barrier' | 'gather'): void {
    const name = `${kind} ${nameOf(header, 'name')}`
    const failure = this.#failureOf(space, undefined)
    if (failure !== undefined) {
      this.#answer(rank, integerOf(header, 'id'), failure)
      return
    }
    const round = space.rounds.get(name) ?? { values: new Map(), waiting: new Map(), gaveUp: new Set() }
    if (round.waiting.has(rank)) {
      this.#answer(rank, integerOf(header, 'id'), { kind: 'refused', message: 'this rank is already waiting there' })
      return
    }
    space.rounds.set(name, round)
    round.values.set(rank, checkedValue(body))
    round.gaveUp.delete(rank)
    this.#wait(
      rank,
      header,
      () => {
        const missing = space.members.filter((member) => !round.values.has(member))
        return space.local(absentRanks(missing, round.gaveUp))
      },
      () => {
        round.values.delete(rank)
        round.gaveUp.add(rank)
        round.waiting.delete(rank)
        if (round.waiting.size === 0 && space.rounds.get(name) === round) space.rounds.delete(name)
      },
      (pending) => round.waiting.set(rank, pending),
    )
    if (round.values.size < space.members.length) return
    const values = kind === 'gather' ? space.members.map((member) => round.values.get(member) ?? noBytes) : []
    const lengths = values.map((value) => value.byteLength)
    const bytes = Buffer.concat(values)
    for (const pending of [...round.waiting.values()]) this.#finish(pending, { lengths }, bytes)
  }

  #share(space: Space, rank: number, header: Header, body: Uint8Array): void {
    const name = nameOf(header, 'name')
    const id = integerOf(header, 'id')
    const root = space.members[integerOf(header, 'root')]
    if (root === undefined) throw new RangeError('no such root')
    const share = space.shares.get(name) ?? { turns: new Map(), next: new Map() }
    space.shares.set(name, share)
    const index = share.next.get(rank) ?? 0
    const turn = share.turns.get(index) ?? { root, value: undefined, taken: 0, waiting: new Map() }
    share.turns.set(index, turn)
    if (turn.root !== root) {
      const [own, theirs] = [root, turn.root].map((one) => space.members.indexOf(one))
      const message = `this rank says that the root is rank ${own}, others say rank ${theirs}`
      this.#answer(rank, id, { kind: 'refused', message })
      return
    }
    if (rank === root) {
      const { failed } = header
      turn.value = typeof failed === 'string' ? failed : checkedValue(body)
      share.next.set(rank, index + 1)
      turn.taken += 1
      this.#send(rank, { id })
      for (const pending of [...turn.waiting.values()]) this.#handOut(share, turn, pending.rank, pending.id)
      if (this.#mayBeForgotten(space, turn)) this.#forgetShared(space, share)
      return
    }
    if (turn.value !== undefined) {
      this.#handOut(share, turn, rank, id)
      if (this.#mayBeForgotten(space, turn)) this.#forgetShared(space, share)
      return
    }
    const failure = this.#failureOf(space, root)
    if (failure !== undefined || turn.waiting.has(rank)) {
      if (turn.waiting.size === 0) share.turns.delete(index)
      this.#answer(rank, id, failure ?? { kind: 'refused', message: 'this rank is already waiting there' })
      return
    }
    this.#wait(
      rank,
      header,
      () => space.local([root]),
      () => {
        turn.waiting.delete(rank)
        if (turn.waiting.size === 0 && turn.value === undefined) share.turns.delete(index)
      },
      (pending) => turn.waiting.set(rank, pending),
    )
  }

  #handOut(share: Share, turn: Turn, rank: number, id: number): void {
    const { value, waiting } = turn
    share.next.set(rank, (share.next.get(rank) ?? 0) + 1)
    turn.taken += 1
    const pending = waiting.get(rank)
    if (pending !== undefined) this.#drop(pending)
    if (typeof value === 'string') this.#answer(rank, id, { kind: 'refused', message: value })
    else this.#send(rank, { id }, value)
  }

  /** A cheap check before a search of all members: every present rank must have taken the turn. */
  #mayBeForgotten(space: Space, turn: Turn): boolean {
    return turn.taken >= space.members.length - this.#gone
  }

  /** Removes the turns that all present ranks have taken. */
  #forgetShared(space: Space, share: Share): void {
    const present = this.#presentOf(space)
    const oldest = Math.min(...present.map((member) => share.next.get(member) ?? 0))
    for (const [index, turn] of share.turns) if (index < oldest && turn.waiting.size === 0) share.turns.delete(index)
  }

  #formSuccessor(space: Space, rank: number, header: Header): void {
    if (space.successors.has(rank)) {
      this.#answer(rank, integerOf(header, 'id'), { kind: 'refused', message: 'this rank is already waiting there' })
      return
    }
    this.#wait(
      rank,
      header,
      () => {
        const missing = space.members.filter((member) => !this.#isGone(member) && !space.successors.has(member))
        return space.local(absentRanks(missing, space.gaveUp))
      },
      () => {
        space.successors.delete(rank)
        if (space.successors.size === 0) space.gaveUp.clear()
        else space.gaveUp.add(rank)
      },
      (pending) => {
        space.gaveUp.delete(rank)
        space.successors.set(rank, pending)
      },
    )
    this.#agree(space)
  }

  /** Makes a new space when all remaining ranks have asked for it. */
  #agree(space: Space): void {
    const present = this.#presentOf(space)
    if (present.length === 0 || present.some((member) => !space.successors.has(member))) return
    const next = new Space(this.#nextSpace, present)
    this.#nextSpace += 1
    this.#spaces.set(next.id, next)
    space.isClosed = true
    const members = space.local(present)
    for (const pending of [...space.successors.values()]) this.#finish(pending, { space: next.id, members })
    const message = 'survivors() has ended this job'
    for (const pending of this.#pendingOf(space)) this.#fail(pending, { kind: 'refused', message })
    space.keys.clear()
  }

  #goneFrom(space: Space, ranks: readonly number[], how: Going): void {
    if (space.isClosed) return
    const roots = new Set(ranks)
    const waiting = (): Pending[] => [
      ...(this.#mayNeverBeSet(space) ? gettersOf(space) : []),
      ...roundWaitersOf(space),
      ...shareWaitersOf(space, roots),
    ]
    if (how === 'lost' || (how === 'ended' && waiting().length > 0)) this.#announceLost(space, ranks)
    // Includes requests for a key's value, if a rank counts as lost only now.
    const failure = failureFor(how, space.local(ranks))
    for (const pending of waiting()) this.#fail(pending, failure)
    if (this.#presentOf(space).length > 0) for (const share of space.shares.values()) this.#forgetShared(space, share)
    this.#agree(space)
  }

  /** Reports lost ranks to all members of a space. A rank that ended normally counts as lost when another needs it. */
  #announceLost(space: Space, ranks: readonly number[]): void {
    for (const rank of ranks) this.#member(rank).presence = 'lost'
    const event: Header = { event: 'lost', space: space.id, ranks: space.local(ranks) }
    for (const member of space.members) this.#send(member, event)
  }

  #pendingOf(space: Space): Pending[] {
    return [...gettersOf(space), ...roundWaitersOf(space), ...shareWaitersOf(space)]
  }

  #wait(
    rank: number,
    header: Header,
    missing: () => number[],
    withdraw: (pending: Pending) => void,
    register: (pending: Pending) => void,
  ): void {
    const id = integerOf(header, 'id')
    const requests = this.#member(rank).pending
    if (requests.has(id)) throw new RangeError('a request number that is in use')
    const pending: Pending = { rank, id, timer: undefined, withdraw: () => withdraw(pending), missing }
    const { timeout } = header
    if (typeof timeout === 'number') {
      const expire = (): void => this.#expire(pending)
      pending.timer = setTimeout(expire, Math.min(Math.max(timeout, 0), 2 ** 31 - 1))
    }
    requests.set(id, pending)
    register(pending)
  }

  #expire(pending: Pending): void {
    const ranks = pending.missing()
    const isJoining = this.#joining.get(pending.rank) === pending
    const refused = isJoining ? ranks.flatMap((rank) => this.#turnedAway.get(rank) ?? []).slice(0, 3) : []
    const failure: Failure = {
      kind: 'timeout',
      ranks,
      ...(refused.length === 0 ? {} : { message: refused.join('; ') }),
    }
    // Every rank that waits for the complete job waits for the same ranks, so all get their names.
    const all = isJoining ? [...this.#joining.values()] : [pending]
    for (const one of all) this.#fail(one, failure)
  }

  #drop(pending: Pending): void {
    clearTimeout(pending.timer)
    this.#member(pending.rank).pending.delete(pending.id)
    pending.withdraw()
  }

  #finish(pending: Pending, header: Header, body?: Uint8Array): void {
    this.#drop(pending)
    this.#send(pending.rank, { id: pending.id, ...header }, body)
  }

  #fail(pending: Pending, failure: Failure): void {
    this.#drop(pending)
    this.#answer(pending.rank, pending.id, failure)
  }

  #answer(rank: number, id: number, failure: Failure): void {
    this.#send(rank, { id, failure })
  }

  #send(rank: number, header: Header, body?: Uint8Array): void {
    this.#member(rank).send?.(header, body)
  }

  /** Returns why an operation that needs this rank, or all ranks, can never complete. */
  #failureOf(space: Space, needed: number | undefined): Failure | undefined {
    if (this.#gone === 0) return undefined
    const candidates = needed === undefined ? space.members : [needed]
    for (const how of ['lost', 'left', 'ended'] as const) {
      const relevant = candidates.filter((member) => this.#member(member).presence === how)
      if (relevant.length === 0) continue
      if (how === 'ended') {
        this.#announceLost(space, relevant)
        for (const pending of gettersOf(space)) this.#fail(pending, failureFor('lost', space.local(relevant)))
      }
      return failureFor(how, space.local(relevant))
    }
    return undefined
  }

  /** True if an unset key may never be set: a rank is lost, or all other ranks are gone. */
  #mayNeverBeSet(space: Space): boolean {
    if (this.#gone === 0) return false
    if (space.members.some((member) => this.#member(member).presence === 'lost')) return true
    return space.members.length > 1 && this.#presentOf(space).length === 1
  }

  #presentOf(space: Space): number[] {
    return space.members.filter((member) => !this.#isGone(member))
  }

  #ranksThat(presence: Presence): number[] {
    return [...this.#members.keys()].filter((rank) => this.#member(rank).presence === presence)
  }

  #isGone(rank: number): boolean {
    const { presence } = this.#member(rank)
    return presence !== 'absent' && presence !== 'joined'
  }

  get #spaceOfAll(): Space {
    return this.#spaces.get(0) as Space
  }

  #member(rank: number): Member {
    const member = this.#members[rank]
    if (member === undefined) throw new RangeError(`no rank ${rank}`)
    return member
  }
}

function ascending(a: number, b: number): number {
  return a - b
}

function failureFor(how: Going, ranks: readonly number[]): Failure {
  return { kind: how === 'lost' ? 'lost' : 'left', ranks }
}

/** Returns the ranks that never arrived; if all did, the ranks that cancelled their wait. */
function absentRanks(missing: readonly number[], gaveUp: ReadonlySet<number>): readonly number[] {
  const absent = missing.filter((member) => !gaveUp.has(member))
  return absent.length > 0 ? absent : missing
}
