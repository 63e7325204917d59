import type { CUevent } from '@shoal/cuda-sys/driver'
import type { Context } from '../context/context.js'
import { recordMark } from './eventCalls.js'
import { shortWait } from './shortWait.js'
import { giveBack, type StreamQueue, type Uses, useUntilEnd } from './unmarkedWork.js'
import { hasEndedNow, Wait } from './wait.js'

/**
 * A copy that reads or writes host memory and that somebody waits for, and an event behind it that tells when it has
 * ended. The context is neither released nor reset before.
 */
export abstract class AwaitedCopy<T> extends Wait {
  readonly #queue: StreamQueue
  #event: CUevent | undefined
  /** What copies before it in the stream use, whose end the event tells as well. */
  #uses: Uses | undefined
  #promise!: Promise<T>
  #resolve!: (result: T) => void
  #reject!: (error: unknown) => void
  /** Whether something was queued: what `copy` throws afterwards leaves work behind. */
  protected hasBegun = false

  constructor(context: Context, queue: StreamQueue) {
    super(context)
    this.#queue = queue
  }

  get event(): CUevent {
    return this.#event as CUevent
  }

  /** Queues it. */
  protected abstract copy(queue: StreamQueue): void
  /** The copy uses the memory no more. Not called where nobody can tell. */
  protected abstract giveBack(): void
  /**
   * Gets `CUDA_SUCCESS`, or why the context of the copy failed; what it gives, the promise gives. The memory is still
   * there.
   */
  protected abstract whenOver(status: number): T | Promise<T>

  /**
   * Queues it. The promise settles once the copy uses the memory no more. A rejection that nobody awaits does not end
   * the process: the next wait on the stream reports it too. @throws as `copy` does; StatusError
   */
  start(): Promise<T> {
    const { context } = this
    const queue = this.#queue
    context._addWait()
    try {
      // Before the copy: without an event nobody would learn when it has ended.
      const event = context._events.take()
      this.#event = event
      this.copy(queue)
      this.hasBegun = true
      recordMark(context, event, queue._halves)
      this.#uses = queue._unmarked?.take()
    } catch (error) {
      this.#undo()
      throw error
    }
    this.#promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    shortWait(this, true)
    return this.#promise
  }

  #undo(): void {
    const { context } = this
    try {
      if (this.#event !== undefined) context._events.giveBack(this.#event)
      if (!this.hasBegun || hasEndedNow(context, this.#queue._handle)) this.giveBack()
    } finally {
      context._endWait()
    }
  }

  protected ended(status: number): void {
    let result: T | Promise<T>
    try {
      result = this.whenOver(status)
    } catch (error) {
      result = Promise.reject(error)
    }
    if (result instanceof Promise) {
      result.finally(() => this.#end(true)).then(this.#resolve, (error) => this.#fail(error))
      return
    }
    try {
      this.#end(true)
      this.#resolve(result)
    } catch (error) {
      this.#fail(error)
    }
  }

  protected failed(error: unknown): void {
    try {
      this.#end(hasEndedNow(this.context, this.#queue._handle))
      this.#fail(error)
    } catch (thrown) {
      // Nobody else would catch it, and the process would end.
      this.#fail(thrown)
    }
  }

  /** Called once. */
  #end(isOver: boolean): void {
    const { context } = this
    if (this.#uses !== undefined) giveBack(context, this.#uses, isOver)
    try {
      context._events.giveBack(this.event)
      if (isOver) this.giveBack()
    } finally {
      context._endWait()
    }
  }

  #fail(error: unknown): void {
    // Only now, as nearly all copies end well.
    this.#promise.catch(() => undefined)
    this.#reject(error)
  }
}

class CopyByFunctions<T> extends AwaitedCopy<T> {
  readonly #functions: CopyFunctions<T>

  constructor(context: Context, queue: StreamQueue, functions: CopyFunctions<T>) {
    super(context, queue)
    this.#functions = functions
  }

  protected copy(): void {
    this.#functions.copy(() => void (this.hasBegun = true))
  }

  protected giveBack(): void {
    this.#functions.giveBack()
  }

  protected whenOver(status: number): T | Promise<T> {
    return this.#functions.whenOver(status)
  }
}

/** A copy in functions, which mean what the methods of {@link AwaitedCopy} mean. */
interface CopyFunctions<T> {
  /** What it throws after `begun` leaves work behind. */
  readonly copy: (begun: () => void) => void
  readonly giveBack: () => void
  readonly whenOver: (status: number) => T | Promise<T>
}

/** Queues a copy that reads or writes host memory, as {@link AwaitedCopy}. */
export function queueHostCopy<T>(
  context: Context,
  queue: StreamQueue,
  copy: (begun: () => void) => void,
  giveBack: () => void,
  whenOver: (status: number) => T | Promise<T>,
): Promise<T> {
  return new CopyByFunctions(context, queue, { copy, giveBack, whenOver }).start()
}

/**
 * Queues a copy that reads or writes host memory and whose end nobody is told of; others may wait for what it uses.
 * What `copy` throws after `begun` leaves work behind. @throws what `copy` throws
 */
export function queueUnobservedCopy(
  context: Context,
  queue: StreamQueue,
  copy: (begun: () => void) => void,
  giveBack: () => void,
): void {
  let hasBegun = false
  try {
    copy(() => {
      hasBegun = true
    })
  } catch (error) {
    if (!hasBegun || hasEndedNow(context, queue._handle)) giveBack()
    throw error
  }
  useUntilEnd(context, queue, { _unhold: giveBack }, true)
}
