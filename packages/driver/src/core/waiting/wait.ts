import { type CUevent, type CUstream, cuStreamSynchronize } from '@shoal/cuda-sys/driver'
import { type BackgroundWork, waitForEvent } from '@shoal/ffi'
import { AbortedError, TimeoutError, type WaitOptions } from '@shoal/types'
import type { Context } from '../context/context.js'
import { Status } from '../errors.js'
import { eventQueryAddress } from './eventCalls.js'
import { ShortWait, shortWait } from './shortWait.js'

/** A wait that a native thread takes over if it takes longer. The context stays retained until the wait ends. */
export abstract class Wait extends ShortWait {
  /** Receives the final status. Neither this method nor `failed` may throw. */
  protected abstract ended(status: number): void
  /** Called when the status cannot be determined. */
  protected abstract failed(error: unknown): void

  override reached(status: number): void {
    if (status === Status.notReady) this.askNatively()
    else this.ended(status)
  }

  protected askNatively(background?: BackgroundWork): void {
    const { context, event } = this
    const options = background === undefined ? undefined : { background }
    const query = { context: context._handle, event, query: eventQueryAddress(), notReady: Status.notReady }
    waitForEvent(query, options).then(
      (status) => this.ended(status),
      (error) => this.failed(error),
    )
  }
}

/** The two callbacks of a promise. */
interface Settle<T> {
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

class StatusWait extends Wait {
  readonly event: CUevent
  readonly #promise: Settle<number>
  readonly #whenOver: (isKnown: boolean) => void
  readonly #background: BackgroundWork | undefined
  #isReleased = false

  constructor(
    context: Context,
    event: CUevent,
    promise: Settle<number>,
    whenOver: (isKnown: boolean) => void,
    background: BackgroundWork | undefined,
  ) {
    super(context)
    this.event = event
    this.#promise = promise
    this.#whenOver = whenOver
    this.#background = background
    if (background !== undefined) background.release = () => void (this.#isReleased = true)
  }

  protected override askNatively(): void {
    super.askNatively(this.#background)
    if (this.#isReleased) this.#background?.release?.()
  }

  protected ended(status: number): void {
    this.#end(true, () => this.#promise.resolve(status))
  }

  protected failed(error: unknown): void {
    this.#end(false, () => this.#promise.reject(error))
  }

  #end(isKnown: boolean, settle: () => void): void {
    try {
      try {
        this.#whenOver(isKnown)
      } finally {
        this.context._endWait()
      }
      settle()
    } catch (error) {
      this.#promise.reject(error)
    }
  }
}

/**
 * Resolves with the final status of an event. `whenOver` always runs, with whether the event's end is known. The
 * context stays retained until then.
 */
export function eventStatus(
  context: Context,
  event: CUevent,
  whenOver: (isKnown: boolean) => void,
  background?: BackgroundWork,
): Promise<number> {
  context._addWait()
  return new Promise((resolve, reject) => {
    shortWait(new StatusWait(context, event, { resolve, reject }, whenOver, background), true)
  })
}

/**
 * Blocks for the stream's work on this thread, as a last resort. Returns false if the driver cannot confirm the end.
 */
export function hasEndedNow(context: Context, stream: CUstream): boolean {
  try {
    context._callDriver('cuStreamSynchronize', () => cuStreamSynchronize(stream))
    return true
  } catch {
    // The caller reports the original error.
    return false
  }
}

/** Resolves with `value` when `work` succeeds, rejects with its error, or ends early as `options` demand. */
export function settle<T>(
  context: Context,
  work: Promise<number>,
  value: T,
  options: WaitOptions,
  operation: string,
  background?: BackgroundWork,
): Promise<T> {
  const finished = work.then((status) => {
    if (status !== Status.success) throw context._cuda.error(status, 'cuEventQuery', `while ${operation} was waiting`)
    return value
  })
  const { signal, timeout } = options
  if (signal === undefined && timeout === undefined) return finished
  return new Promise<T>((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const onAbort = (): void => giveUp(new AbortedError({ operation, cause: signal?.reason }))
    const stop = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    const giveUp = (error: Error): void => {
      stop()
      // The event is watched until the work completes. Since no caller waits any more, the process may end before.
      background?.release?.()
      reject(error)
    }
    if (timeout !== undefined) {
      timer = setTimeout(() => giveUp(new TimeoutError({ operation, timeout })), timeout)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    finished.then(
      (result) => {
        stop()
        resolve(result)
      },
      (error: unknown) => {
        stop()
        reject(error)
      },
    )
  })
}
