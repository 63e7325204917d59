import type { CUevent, CUstream } from '@shoal/cuda-sys/driver/common'
import type { Context } from '../context/context.js'
import { shortWait } from './shortWait.js'
import { hasEndedNow, record, Wait } from './wait.js'

/**
 * A copy that reads or writes host memory, and an event behind it that tells when it has ended. The context is neither
 * released nor reset before.
 */
abstract class HostCopy extends Wait {
  declare readonly stream: CUstream
  #event: CUevent | undefined
  /** Whether something was queued: what `queue` throws afterwards leaves work behind. */
  protected hasBegun = false

  get event(): CUevent {
    return this.#event as CUevent
  }

  protected abstract queue(): void
  /** The copy uses the memory no more. Not called where nobody can tell. */
  protected abstract giveBack(): void

  /** @throws what `queue` throws; StatusError */
  protected queueMarked(): void {
    const { context, stream } = this
    context._addWait()
    try {
      // Before the copy: without an event nobody would learn when it has ended.
      const event = context._events.take()
      this.#event = event
      this.queue()
      this.hasBegun = true
      record(context, event, stream)
    } catch (error) {
      try {
        if (this.#event !== undefined) context._events.giveBack(this.#event)
        if (!this.hasBegun || hasEndedNow(context, stream)) this.giveBack()
      } finally {
        context._endWait()
      }
      throw error
    }
  }

  /** Called once. */
  protected end(isOver: boolean): void {
    try {
      this.context._events.giveBack(this.event)
      if (isOver) this.giveBack()
    } finally {
      this.context._endWait()
    }
  }
}

/** One that somebody waits for. */
export abstract class AwaitedCopy<T> extends HostCopy {
  #promise!: Promise<T>
  #resolve!: (result: T) => void
  #reject!: (error: unknown) => void

  /** Gets `CUDA_SUCCESS`, or why the context of the copy failed; what it gives, the promise gives. The memory is still there. */
  protected abstract whenOver(status: number): T | Promise<T>

  /**
   * Queues it. The promise settles once the copy uses the memory no more. A rejection that nobody awaits does not end the
   * process: the next wait on the stream reports it too. @throws as `queue` does; StatusError
   */
  start(): Promise<T> {
    this.queueMarked()
    this.#promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    shortWait(this, true)
    return this.#promise
  }

  protected ended(status: number): void {
    let result: T | Promise<T>
    try {
      result = this.whenOver(status)
    } catch (error) {
      result = Promise.reject(error)
    }
    if (result instanceof Promise) {
      result.finally(() => this.end(true)).then(this.#resolve, (error) => this.#fail(error))
      return
    }
    try {
      this.end(true)
      this.#resolve(result)
    } catch (error) {
      this.#fail(error)
    }
  }

  protected failed(error: unknown): void {
    try {
      this.end(hasEndedNow(this.context, this.stream))
      this.#fail(error)
    } catch (thrown) {
      // Nobody else would catch it, and the process would end.
      this.#fail(thrown)
    }
  }

  #fail(error: unknown): void {
    // Only now, as nearly all copies end well.
    this.#promise.catch(() => undefined)
    this.#reject(error)
  }
}

/** One whose end nobody is told of. */
export abstract class UnobservedCopy extends HostCopy {
  /** Queues it. @param isUrgent whether others wait for the memory that is given back. @throws as `queue` does; StatusError */
  start(isUrgent: boolean): void {
    this.queueMarked()
    shortWait(this, isUrgent)
  }

  protected ended(): void {
    this.#end(() => true)
  }

  protected failed(): void {
    this.#end(() => hasEndedNow(this.context, this.stream))
  }

  #end(isOver: () => boolean): void {
    try {
      this.end(isOver())
    } catch (error) {
      process.emitWarning(error as Error)
    }
  }
}

class CopyByFunctions<T> extends AwaitedCopy<T> {
  readonly #functions: CopyFunctions<T>

  constructor(context: Context, stream: CUstream, functions: CopyFunctions<T>) {
    super(context, stream)
    this.#functions = functions
  }

  protected queue(): void {
    this.#functions.queue(() => void (this.hasBegun = true))
  }

  protected giveBack(): void {
    this.#functions.giveBack()
  }

  protected whenOver(status: number): T | Promise<T> {
    return this.#functions.whenOver(status)
  }
}

class UnobservedByFunctions extends UnobservedCopy {
  readonly #functions: Omit<CopyFunctions<void>, 'whenOver'>

  constructor(context: Context, stream: CUstream, functions: Omit<CopyFunctions<void>, 'whenOver'>) {
    super(context, stream)
    this.#functions = functions
  }

  protected queue(): void {
    this.#functions.queue(() => void (this.hasBegun = true))
  }

  protected giveBack(): void {
    this.#functions.giveBack()
  }
}

/** A copy in functions, which mean what the methods of {@link AwaitedCopy} mean. */
interface CopyFunctions<T> {
  /** What it throws after `begun` leaves work behind. */
  readonly queue: (begun: () => void) => void
  readonly giveBack: () => void
  readonly whenOver: (status: number) => T | Promise<T>
}

/** Queues a copy that reads or writes host memory, as {@link AwaitedCopy}. */
export function queueHostCopy<T>(
  context: Context,
  stream: CUstream,
  queue: (begun: () => void) => void,
  giveBack: () => void,
  whenOver: (status: number) => T | Promise<T>,
): Promise<T> {
  return new CopyByFunctions(context, stream, { queue, giveBack, whenOver }).start()
}

/** The same for a copy whose end nobody is told of, as {@link UnobservedCopy}; others may wait for its memory. */
export function queueUnobservedCopy(
  context: Context,
  stream: CUstream,
  queue: (begun: () => void) => void,
  giveBack: () => void,
): void {
  new UnobservedByFunctions(context, stream, { queue, giveBack }).start(true)
}
