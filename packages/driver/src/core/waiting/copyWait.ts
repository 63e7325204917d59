import type { CUevent } from '@shoal/cuda-sys/driver'
import type { Context } from '../context/context.js'
import { recordMark } from './eventCalls.js'
import { shortWait } from './shortWait.js'
import { giveBack, type StreamQueue, type Uses, useUntilEnd } from './unmarkedWork.js'
import { hasEndedNow, Wait } from './wait.js'

/**
 * A copy with host memory that the caller awaits, and the event that follows it. The context is not released or reset
 * before the copy completes.
 */
export abstract class AwaitedCopy<T> extends Wait {
  readonly #queue: StreamQueue
  #event: CUevent | undefined
  /** Resources of earlier copies in the stream. The event covers these copies too. */
  #uses: Uses | undefined
  #promise!: Promise<T>
  #resolve!: (result: T) => void
  #reject!: (error: unknown) => void
  /** Whether something was queued. If so, an error of `copy` leaves work in the stream. */
  protected hasBegun = false

  constructor(context: Context, queue: StreamQueue) {
    super(context)
    this.#queue = queue
  }

  get event(): CUevent {
    return this.#event as CUevent
  }

  /** Queues the copy. */
  protected abstract copy(queue: StreamQueue): void
  /** Called when the copy no longer uses the memory. Not called if that cannot be known. */
  protected abstract giveBack(): void
  /**
   * Receives `CUDA_SUCCESS` or the context's error. Its result becomes the promise's result. The memory still exists.
   */
  protected abstract whenOver(status: number): T | Promise<T>

  /**
   * Queues the copy. The promise settles when the copy no longer uses the memory. An unawaited rejection does not end
   * the process, because the next wait on the stream reports the error too. @throws as `copy` does; StatusError
   */
  start(): Promise<T> {
    const { context } = this
    const queue = this.#queue
    context._addWait()
    try {
      // Take the event before the copy: without an event, the end of the copy could not be observed.
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
      // No caller would catch this error, and the process would end.
      this.#fail(thrown)
    }
  }

  /** Ends the wait, once. */
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
    // Attached only now, because nearly all copies succeed.
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

/** The methods of {@link AwaitedCopy} as functions. */
interface CopyFunctions<T> {
  /** Queues the copy. An error after calling `begun` leaves work in the stream. */
  readonly copy: (begun: () => void) => void
  readonly giveBack: () => void
  readonly whenOver: (status: number) => T | Promise<T>
}

/** Queues a copy with host memory, like {@link AwaitedCopy}. */
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
 * Queues a copy with host memory that no caller awaits, although others may wait for its resources. An error of `copy`
 * after calling `begun` leaves work in the stream. @throws errors of `copy`
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
