import { AbortedError, TimeoutError } from '@shoal/types'
import { addon, pending } from '../addon/load.js'
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
 * fails ends the wait with its error code.
 * @throws AbortedError, TimeoutError, RangeError for a timeout that is no duration.
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
  if (signal?.aborted === true) return Promise.reject(aborted(what, signal))
  return new Promise((resolve, reject) => {
    const id = nextWait++
    let timer: NodeJS.Timeout | undefined
    const release = holdEventLoop(options.background)
    const end = (): void => {
      release()
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    const giveUp = (error: Error): void => {
      // Already reported by the native thread: its message is on the way and wins.
      if (!addon().forgetWait(id)) return
      pending.waits.delete(id)
      end()
      reject(error)
    }
    const onAbort = (): void => giveUp(aborted(what, signal))
    pending.waits.set(id, (status) => {
      end()
      resolve(status)
    })
    if (!addon().wait(id, query.context, query.query, query.event, query.notReady)) {
      pending.waits.delete(id)
      end()
      reject(new Error('the system gives no more threads'))
      return
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    if (timeout !== undefined && timeout < 2 ** 31) {
      timer = setTimeout(() => giveUp(new TimeoutError({ operation: what, timeout })), timeout)
    }
  })
}

function aborted(what: string, signal: AbortSignal | undefined): AbortedError {
  return new AbortedError({ operation: what, cause: signal?.reason })
}
