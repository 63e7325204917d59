import type { CUevent, CUstream } from '@shoal/cuda-sys/driver'
import type { Context } from '../context/context.js'
import type { U64Halves } from '../u64Halves.js'
import { recordMark } from './eventCalls.js'
import { markInTurn, shortWait } from './shortWait.js'
import { hasEndedNow, Wait } from './wait.js'

/** A resource that a copy uses. */
export interface InUse {
  /** Called when the copy no longer uses the resource. */
  _unhold(): void
}

/** Resources of several copies, the last copy first. */
export interface Uses {
  readonly what: InUse
  readonly before: Uses | undefined
}

/** The parts of a stream that queuing needs: both forms of the handle, and the copies without an event. */
export interface StreamQueue {
  readonly _handle: CUstream
  readonly _halves: U64Halves
  readonly _unmarked: UnmarkedWork | undefined
}

/**
 * Copies of a stream that no caller awaits, since the last event after them. The next event of a wait covers these
 * copies too. If there is no such wait, the next turn of the event loop records an event.
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

  /** Adds the resource of a queued copy. @param isUrgent whether other calls wait for the resource */
  add(what: InUse, isUrgent: boolean): void {
    const before = this.#uses
    this.#uses = { what, before }
    if (isUrgent) this.#isUrgent = true
    if (before !== undefined) return
    this.#context._addWait()
    markInTurn(this)
  }

  /** Returns the resources and forgets them. The caller records an event, then releases them with {@link giveBack}. */
  take(): Uses | undefined {
    const uses = this.#uses
    this.#uses = undefined
    this.#isUrgent = false
    return uses
  }

  /**
   * Records an event if there are copies without one. An error is not reported here: the next wait on the stream
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

/** Keeps a copy's resource until the copy completes. */
export function useUntilEnd(context: Context, queue: StreamQueue, what: InUse, isUrgent: boolean): void {
  if (queue._unmarked !== undefined) {
    queue._unmarked.add(what, isUrgent)
    return
  }
  // The owner of this stream may destroy it before the next turn, so record the event now.
  const work = new UnmarkedWork(context, queue)
  work.add(what, isUrgent)
  work.mark()
}

/**
 * Releases resources taken from {@link UnmarkedWork}. If it is unknown whether the copies completed, keeps them
 * forever.
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

/** The event after copies that no caller awaits. */
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
