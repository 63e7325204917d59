import type { CUevent, CUstream } from '@shoal/cuda-sys/driver'
import type { Context } from '../context/context.js'
import type { U64Halves } from '../u64Halves.js'
import { recordMark } from './eventCalls.js'
import { markInTurn, shortWait } from './shortWait.js'
import { hasEndedNow, Wait } from './wait.js'

/** What a copy uses. */
export interface InUse {
  /** The copy uses it no more. */
  _unhold(): void
}

/** What copies use, the last one first. */
export interface Uses {
  readonly what: InUse
  readonly before: Uses | undefined
}

/**
 * What is needed of a stream to queue something: its handle, as calls with a bigint and those without take it, and what
 * is behind it.
 */
export interface StreamQueue {
  readonly _handle: CUstream
  readonly _halves: U64Halves
  readonly _unmarked: UnmarkedWork | undefined
}

/**
 * Copies of a stream whose end nobody is told of, since the last event behind them. The next event that a wait records
 * on the stream tells their end, too; where none does, one is recorded in the next turn of the event loop.
 */
export class UnmarkedWork {
  readonly #context: Context
  readonly #queue: StreamQueue
  #uses: Uses | undefined
  #isUrgent = false

  constructor(context: Context, queue: StreamQueue) {
    this.#context = context
    this.#queue = queue
  }

  /** A copy was queued. @param isUrgent whether others wait for what it uses */
  add(what: InUse, isUrgent: boolean): void {
    const before = this.#uses
    this.#uses = { what, before }
    if (isUrgent) this.#isUrgent = true
    if (before !== undefined) return
    this.#context._addWait()
    markInTurn(this)
  }

  /** What is in use, for somebody who records an event behind it and gives it back then, by {@link giveBack}. */
  take(): Uses | undefined {
    const uses = this.#uses
    this.#uses = undefined
    this.#isUrgent = false
    return uses
  }

  /**
   * Records an event behind it, if anything is unmarked. Nobody can be told of an error: the next wait on the stream
   * reports it.
   */
  mark(): void {
    if (this.#uses === undefined) return
    const isUrgent = this.#isUrgent
    const uses = this.take() as Uses
    const [context, queue] = [this.#context, this.#queue]
    let event: CUevent | undefined
    try {
      event = context._events.take()
      recordMark(context, event, queue._halves)
    } catch {
      if (event !== undefined) context._events.giveBack(event)
      giveBack(context, uses, hasEndedNow(context, queue._handle))
      return
    }
    shortWait(new Mark(context, queue, event, uses), isUrgent)
  }
}

/** Keeps what a copy uses until it has ended, behind a stream of whose end we are told or of another one. */
export function useUntilEnd(context: Context, queue: StreamQueue, what: InUse, isUrgent: boolean): void {
  if (queue._unmarked !== undefined) {
    queue._unmarked.add(what, isUrgent)
    return
  }
  // Who has the stream may destroy it before the next turn.
  const work = new UnmarkedWork(context, queue)
  work.add(what, isUrgent)
  work.mark()
}

/**
 * Gives back what was taken of {@link UnmarkedWork}, or leaves it where nobody can tell whether the copies have ended.
 */
export function giveBack(context: Context, uses: Uses, isOver: boolean): void {
  try {
    for (let use: Uses | undefined = isOver ? uses : undefined; use !== undefined; use = use.before) use.what._unhold()
  } catch (error) {
    process.emitWarning(error as Error)
  } finally {
    context._endWait()
  }
}

/** An event behind copies whose end nobody is told of. */
class Mark extends Wait {
  readonly event: CUevent
  readonly #queue: StreamQueue
  readonly #uses: Uses

  constructor(context: Context, queue: StreamQueue, event: CUevent, uses: Uses) {
    super(context)
    this.event = event
    this.#queue = queue
    this.#uses = uses
  }

  protected ended(): void {
    this.#end(true)
  }

  protected failed(): void {
    this.#end(hasEndedNow(this.context, this.#queue._handle))
  }

  #end(isOver: boolean): void {
    this.context._events.giveBack(this.event)
    giveBack(this.context, this.#uses, isOver)
  }
}
