import {
  AbortedError,
  type OptionKeys,
  outOfRange,
  requireAddress,
  requireInteger,
  requireOptions,
  settleInTime,
  TimeoutError,
} from '@shoal/types'
import { addon, pending } from '../addon/load.js'
import { onAbort } from './abortSignals.js'
import { holdEventLoop, noMoreThreads } from './hold.js'
import { readWaitOptions, type WaitOptions } from './waitOptions.js'

/** A query to repeat while it returns "not ready". */
export interface CompletionQuery {
  /** Context of the query; `0n` for none. */
  readonly context: bigint
  /** Argument of the query: the handle of an event, a stream or a communicator. */
  readonly event: bigint
  /** Address of a C function `int query(handle)`, such as `cuEventQuery`. */
  readonly query: bigint
  /** The "not ready" status: 600 for CUDA. */
  readonly notReady: number
  /** The awaited operation, for error messages. */
  readonly what?: string
}

const api = 'waitForEvent'
const queryKeys: OptionKeys<CompletionQuery> = { context: true, event: true, query: true, notReady: true, what: true }
let nextWait = 1

/**
 * Resolves with the first status other than "not ready".
 *
 * A native thread polls, so the event loop stays free. A failed context ends the wait with its status. After the
 * promise has settled the query does not run again. Therefore an abort or a timeout during a blocking query takes
 * effect when the query returns.
 * @throws AbortedError, TimeoutError; TypeError, RangeError for wrong arguments.
 * @example
 * await waitForEvent({ context, event, query: driver.address('cuEventQuery', 2000), notReady: 600 }, { timeout: 1000 })
 */
export function waitForEvent(query: CompletionQuery, options?: WaitOptions): Promise<number> {
  let checked: WaitOptions
  try {
    checked = readWaitOptions(options, api)
    checkQuery(query)
  } catch (error) {
    return Promise.reject(error)
  }
  const { background, signal, timeout } = checked
  const what = query.what ?? 'GPU work'
  if (signal?.aborted === true) return Promise.reject(aborted(what, signal))
  return new Promise((resolve, reject) => {
    const id = nextWait++
    let timer: NodeJS.Timeout | undefined
    let stopListening: (() => void) | undefined
    let reason: Error | undefined
    const release = holdEventLoop(background)
    const end = (): void => {
      release()
      clearTimeout(timer)
      stopListening?.()
    }
    const giveUp = (error: Error): void => {
      if (reason !== undefined) return
      const outcome = addon().forgetWait(id)
      // The native thread has already reported completion, and its message takes precedence.
      if (outcome === 0) return
      reason = error
      // The caller may destroy the event after the promise settles, so wait until the query has returned.
      if (outcome === 2) return
      pending.waits.delete(id)
      end()
      reject(error)
    }
    pending.waits.set(id, (status, isForgotten) => {
      end()
      if (isForgotten) reject(reason)
      else settleInTime(() => resolve(status))
    })
    if (!addon().wait(id, query.context, query.query, query.event, query.notReady)) {
      pending.waits.delete(id)
      end()
      reject(noMoreThreads('waitForEvent'))
      return
    }
    if (signal !== undefined) stopListening = onAbort(signal, () => giveUp(aborted(what, signal)))
    if (timeout !== undefined) timer = setTimeout(() => giveUp(new TimeoutError({ operation: what, timeout })), timeout)
  })
}

function checkQuery(given: CompletionQuery): void {
  const { context, event, query, notReady } = requireOptions<CompletionQuery>(given, api, queryKeys, 'query')
  requireAddress(context, api, 'query.context')
  requireAddress(event, api, 'query.event')
  if (requireAddress(query, api, 'query.query') === 0n)
    throw outOfRange(api, 'query.query', 'the address of a function', 0n)
  requireInteger(notReady, api, 'query.notReady', -(2 ** 31), 2 ** 31 - 1)
}

function aborted(what: string, signal: AbortSignal | undefined): AbortedError {
  return new AbortedError({ operation: what, cause: signal?.reason })
}
