import { type CUevent, type CUstream, cuEventRecord, driver } from '@shoal/cuda-sys/driver'
import { enterContext, leaveContext, waitForEvent } from '@shoal/ffi'
import { AbortedError, TimeoutError } from '@shoal/types'
import { describeValue } from './checks.js'
import type { Context } from './context.js'
import { check, driverError, Status } from './errors.js'

/** How long to wait. The GPU work goes on when a wait ends early, and what it uses stays alive until it ends. */
export interface WaitOptions {
  /** Ends the wait with `AbortedError`. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which the wait ends with `TimeoutError`. */
  readonly timeout?: number | undefined
}

const longestTimeout = 2 ** 31 - 1

/** Refuses options that make no sense, and a wait that is aborted before it began. */
export function checkWaitOptions(options: WaitOptions, operation: string): void {
  const { signal, timeout } = options
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`signal must be an AbortSignal, not ${describeValue(signal)}`)
  }
  if (timeout !== undefined && (typeof timeout !== 'number' || !(timeout >= 0) || timeout > longestTimeout)) {
    const message = `timeout must be between 0 and ${longestTimeout} milliseconds, not ${describeValue(timeout)}`
    throw typeof timeout === 'number' && !Number.isNaN(timeout) ? new RangeError(message) : new TypeError(message)
  }
  if (signal?.aborted) throw new AbortedError({ operation, cause: signal.reason })
}

/**
 * Resolves with the final status of an event. The context stays retained until `whenOver` has run, which it does however
 * the wait ends.
 */
export async function eventStatus(context: Context, event: CUevent, whenOver: () => void): Promise<number> {
  context._addWait()
  try {
    return await waitForEvent({
      context: context._handle,
      event,
      query: driver.address('cuEventQuery', 2000),
      notReady: Status.notReady,
    })
  } finally {
    whenOver()
    context._endWait()
  }
}

/**
 * Records an event on the stream now and resolves with its final status: what was queued so far has ended, or the
 * context has failed. Never rejects because of the GPU, so it may be left unobserved.
 */
export function streamStatus(context: Context, stream: CUstream): Promise<number> {
  const previous = enterContext(context.handle)
  let event: CUevent
  try {
    event = context._takeEvent()
    check(cuEventRecord(event, stream), 'cuEventRecord')
  } finally {
    leaveContext(previous)
  }
  return eventStatus(context, event, () => context._returnEvent(event))
}

/** Resolves with `value` once `work` has given success, or rejects with its error, or ends early as `options` say. */
export function settle<T>(work: Promise<number>, value: T, options: WaitOptions, operation: string): Promise<T> {
  const finished = work.then((status) => {
    if (status !== Status.success) throw driverError(status, 'cuEventQuery', `while ${operation} was waiting`)
    return value
  })
  const { signal, timeout } = options
  if (signal === undefined && timeout === undefined) return finished
  return new Promise<T>((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const onAbort = (): void => {
      stop()
      reject(new AbortedError({ operation, cause: signal?.reason }))
    }
    const stop = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    if (timeout !== undefined) {
      timer = setTimeout(() => {
        stop()
        reject(new TimeoutError({ operation, timeout }))
      }, timeout)
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
