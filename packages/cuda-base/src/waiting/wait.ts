import { type CUevent, type CUstream, cuEventRecord, cuStreamSynchronize, driver } from '@shoal/cuda-sys/driver/common'
import { type BackgroundWork, waitForEvent } from '@shoal/ffi'
import { AbortedError, TimeoutError, type WaitOptions } from '@shoal/types'
import type { Context } from '../context/context.js'
import { Status } from '../errors.js'
import { shortWait } from './shortWait.js'

/**
 * Resolves with the final status of an event. The context stays retained until `whenOver` has run, which it does however
 * the wait ends.
 */
export async function eventStatus(
  context: Context,
  event: CUevent,
  whenOver: () => void,
  background: BackgroundWork = {},
): Promise<number> {
  context._addWait()
  try {
    let isReleased = false
    background.release = () => {
      isReleased = true
    }
    const early = await shortWait(context, event)
    if (early !== Status.notReady) return early
    const query = driver.address('cuEventQuery', 2000)
    const { _handle } = context
    const status = waitForEvent({ context: _handle, event, query, notReady: Status.notReady }, { background })
    if (isReleased) background.release()
    return await status
  } finally {
    try {
      whenOver()
    } finally {
      context._endWait()
    }
  }
}

/**
 * Records an event on the stream now and resolves with its final status: what was queued so far has ended, or the
 * context has failed. Never rejects because of the GPU, so it may be left unobserved.
 */
export function streamStatus(context: Context, stream: CUstream, background?: BackgroundWork): Promise<number> {
  const event = context._events.take()
  try {
    context._callDriver('cuEventRecord', () => cuEventRecord(event, stream))
  } catch (error) {
    context._events.giveBack(event)
    throw error
  }
  return eventStatus(context, event, () => context._events.giveBack(event), background)
}

/**
 * Queues a copy that reads or writes host memory and calls `whenOver` once the copy uses that memory no more, with its
 * status: `CUDA_SUCCESS`, or why its context failed. The context is neither released nor reset before `whenOver`, and
 * the promise it may give, have ended. What `queue` throws after `begun` leaves work behind. Where nobody can tell whether the copy has ended, the memory is never given back.
 */
export function queueHostCopy<T>(
  context: Context,
  stream: CUstream,
  queue: (begun: () => void) => void,
  giveBack: () => void,
  whenOver: (status: number) => T | Promise<T>,
): Promise<T> {
  context._addWait()
  let event: CUevent | undefined
  let isQueued = false
  try {
    // Before the copy: without an event nobody would learn when it has ended.
    const mark = context._events.take()
    event = mark
    const begun = (): void => void (isQueued = true)
    queue(begun)
    begun()
    context._callDriver('cuEventRecord', () => cuEventRecord(mark, stream))
  } catch (error) {
    try {
      if (event !== undefined) context._events.giveBack(event)
      if (!isQueued || hasEndedNow(context, stream)) giveBack()
    } finally {
      context._endWait()
    }
    throw error
  }
  return hostCopyOver(context, stream, event, giveBack, whenOver)
}

async function hostCopyOver<T>(
  context: Context,
  stream: CUstream,
  event: CUevent,
  giveBack: () => void,
  whenOver: (status: number) => T | Promise<T>,
): Promise<T> {
  let isOver = false
  try {
    const status = await eventStatus(context, event, () => context._events.giveBack(event))
    isOver = true
    return await whenOver(status)
  } finally {
    try {
      if (isOver || hasEndedNow(context, stream)) giveBack()
    } finally {
      context._endWait()
    }
  }
}

/** Waits for the stream on this thread, the last resort; false when the driver cannot say that its work has ended. */
function hasEndedNow(context: Context, stream: CUstream): boolean {
  try {
    context._callDriver('cuStreamSynchronize', () => cuStreamSynchronize(stream))
    return true
  } catch {
    // The error that led here is the one to report.
    return false
  }
}

/** Resolves with `value` once `work` has given success, or rejects with its error, or ends early as `options` say. */
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
      // The event is watched until the work ends, but nobody waits for it any more: the process may end before.
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
