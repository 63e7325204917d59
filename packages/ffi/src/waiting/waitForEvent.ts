import { AbortedError, TimeoutError } from '@shoal/types'
import { addon, pending } from '../addon/load.js'
import { isAbortSignal, onAbort } from './abortSignals.js'
import { type BackgroundWork, holdEventLoop } from './hold.js'

/** What is asked until it no longer says "not ready". */
export interface CompletionQuery {
  /** Context to ask in; `0n` for none. */
  readonly context: bigint
  /** Argument of the query: the handle of an event, a stream or a communicator. */
  readonly event: bigint
  /** Address of a C function `int query(handle)`, such as `cuEventQuery`. */
  readonly query: bigint
  /** The status that means "not yet", 600 for CUDA. */
  readonly notReady: number
  /** What is waited for, for error messages. */
  readonly what?: string
}

export interface WaitOptions {
  /** Filled with what lets the process end although the wait is still pending. */
  readonly background?: BackgroundWork | undefined
  /** Ends the wait with an AbortedError. The work itself goes on. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which the wait ends with a TimeoutError. The work itself goes on. */
  readonly timeout?: number | undefined
}

let nextWait = 1

/**
 * Resolves with the first status other than "not ready". A native thread asks, so the event loop is free; a context that
 * fails ends the wait with its error code. Once the promise is settled the query is not running and is not asked again, so
 * an abort or a timeout that comes during a query that blocks takes effect when that returns.
 * @throws AbortedError, TimeoutError; RangeError for a timeout that is no duration, TypeError for what is no query or signal.
 */
export function waitForEvent(query: CompletionQuery, options: WaitOptions = {}): Promise<number> {
  const { signal, timeout } = options
  const what = query.what ?? 'GPU work'
  if (timeout !== undefined && (typeof timeout !== 'number' || !(timeout >= 0))) {
    return Promise.reject(
      new RangeError(`timeout must be a non-negative number of milliseconds, got ${String(timeout)}`),
    )
  }
  for (const name of ['context', 'event', 'query'] as const) {
    const value: unknown = query[name]
    if (typeof value !== 'bigint' || BigInt.asUintN(64, value) !== value || (name === 'query' && value === 0n)) {
      return Promise.reject(new TypeError(`waitForEvent: ${name} must be a bigint of 64 bits, got ${String(value)}`))
    }
  }
  if (!Number.isInteger(query.notReady)) return Promise.reject(new TypeError('waitForEvent: notReady must be a status'))
  if (signal != null && !isAbortSignal(signal)) {
    return Promise.reject(new TypeError(`waitForEvent: signal must be an AbortSignal, got ${String(signal)}`))
  }
  if (signal?.aborted === true) return Promise.reject(aborted(what, signal))
  return new Promise((resolve, reject) => {
    const id = nextWait++
    let timer: NodeJS.Timeout | undefined
    let stopListening: (() => void) | undefined
    let reason: Error | undefined
    const release = holdEventLoop(options.background)
    const end = (): void => {
      release()
      clearTimeout(timer)
      stopListening?.()
    }
    const giveUp = (error: Error): void => {
      if (reason !== undefined) return
      const outcome = addon().forgetWait(id)
      // Already reported by the native thread: its message is on the way and wins.
      if (outcome === 0) return
      reason = error
      // The caller may destroy what is asked for as soon as the promise is settled, so not while it is being asked.
      if (outcome === 2) return
      pending.waits.delete(id)
      end()
      reject(error)
    }
    pending.waits.set(id, (status, isForgotten) => {
      end()
      if (isForgotten) reject(reason)
      else resolve(status)
    })
    if (!addon().wait(id, query.context, query.query, query.event, query.notReady)) {
      pending.waits.delete(id)
      end()
      reject(new Error('the system gives no more threads'))
      return
    }
    if (signal != null) stopListening = onAbort(signal, () => giveUp(aborted(what, signal)))
    if (timeout !== undefined && timeout < 2 ** 31) {
      timer = setTimeout(() => giveUp(new TimeoutError({ operation: what, timeout })), timeout)
    }
  })
}

function aborted(what: string, signal: AbortSignal | undefined): AbortedError {
  return new AbortedError({ operation: what, cause: signal?.reason })
}
