import { type CUevent, type CUstream, cuEventRecord, cuStreamSynchronize, driver } from '@shoal/cuda-sys/driver/common'
import { type BackgroundWork, callInContext, waitForEvent } from '@shoal/ffi'
import { AbortedError, TimeoutError, type WaitOptions } from '@shoal/types'
import type { Context } from '../context/context.js'
import { check, Status } from '../errors.js'
import { shortWait } from './shortWait.js'

/**
 * Calls `reached` with the final status of an event, or `failed` where nobody can tell it. Neither may throw.
 * @param isUrgent whether it is to be known as soon as it can be
 */
function whenReached(
  context: Context,
  event: CUevent,
  isUrgent: boolean,
  background: BackgroundWork | undefined,
  reached: (status: number) => void,
  failed: (error: unknown) => void,
): void {
  let isReleased = false
  if (background !== undefined) {
    background.release = () => {
      isReleased = true
    }
  }
  shortWait(context, event, isUrgent, (early) => {
    if (early !== Status.notReady) {
      reached(early)
      return
    }
    const options = background === undefined ? undefined : { background }
    const query = { context: context._handle, event, query: queryAddress(), notReady: Status.notReady }
    waitForEvent(query, options).then(reached, failed)
    if (isReleased) background?.release?.()
  })
}

let address: bigint | undefined

function queryAddress(): bigint {
  address ??= driver.address('cuEventQuery', 2000)
  return address
}

/**
 * Resolves with the final status of an event. The context stays retained until `whenOver` has run, which it does however
 * the wait ends.
 */
export function eventStatus(
  context: Context,
  event: CUevent,
  whenOver: () => void,
  background?: BackgroundWork,
): Promise<number> {
  context._addWait()
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      try {
        try {
          whenOver()
        } finally {
          context._endWait()
        }
        settle()
      } catch (error) {
        reject(error)
      }
    }
    whenReached(
      context,
      event,
      true,
      background,
      (status) => end(() => resolve(status)),
      (error) => end(() => reject(error)),
    )
  })
}

/**
 * Records an event on the stream now and resolves with its final status: what was queued so far has ended, or the
 * context has failed. Never rejects because of the GPU, so it may be left unobserved.
 */
export function streamStatus(context: Context, stream: CUstream, background?: BackgroundWork): Promise<number> {
  const event = context._events.take()
  try {
    record(context, event, stream)
  } catch (error) {
    context._events.giveBack(event)
    throw error
  }
  return eventStatus(context, event, () => context._events.giveBack(event), background)
}

/**
 * Queues a copy that reads or writes host memory and resolves with what `whenOver` gives once the copy uses that memory no
 * more; it gets the status: `CUDA_SUCCESS`, or why the context of the copy failed. The context is neither released nor reset
 * before `whenOver`, and the promise it may give, have ended. What `queue` throws after `begun` leaves work behind. Where
 * nobody can tell whether the copy has ended, the memory is never given back.
 */
export function queueHostCopy<T>(
  context: Context,
  stream: CUstream,
  queue: (begun: () => void) => void,
  giveBack: () => void,
  whenOver: (status: number) => T | Promise<T>,
): Promise<T> {
  const event = queueMarked(context, stream, queue, giveBack)
  return new Promise((resolve, reject) => {
    const reached = (status: number): void => {
      const end = (): void => endHostCopy(context, event, giveBack)
      let result: T | Promise<T>
      try {
        result = whenOver(status)
      } catch (error) {
        result = Promise.reject(error)
      }
      if (result instanceof Promise) {
        result.finally(end).then(resolve, reject)
        return
      }
      try {
        end()
        resolve(result)
      } catch (error) {
        reject(error)
      }
    }
    whenReached(context, event, true, undefined, reached, (error) => {
      try {
        endHostCopy(context, event, hasEndedNow(context, stream) ? giveBack : undefined)
        reject(error)
      } catch (thrown) {
        // Nobody else would catch it, and the process would end.
        reject(thrown)
      }
    })
  })
}

/** The same for a copy whose end nobody is told of. @param isUrgent whether others wait for the memory that is given back */
export function queueUnobservedCopy(
  context: Context,
  stream: CUstream,
  queue: (begun: () => void) => void,
  giveBack: () => void,
  isUrgent: boolean,
): void {
  const event = queueMarked(context, stream, queue, giveBack)
  const warn = (work: () => void): void => {
    try {
      work()
    } catch (error) {
      process.emitWarning(error as Error)
    }
  }
  whenReached(
    context,
    event,
    isUrgent,
    undefined,
    () => warn(() => endHostCopy(context, event, giveBack)),
    () => warn(() => endHostCopy(context, event, hasEndedNow(context, stream) ? giveBack : undefined)),
  )
}

/** Queues work and, behind it, an event that tells when it has ended. The context stays until {@link endHostCopy}. */
function queueMarked(
  context: Context,
  stream: CUstream,
  queue: (begun: () => void) => void,
  giveBack: () => void,
): CUevent {
  context._addWait()
  let event: CUevent | undefined
  let isQueued = false
  try {
    // Before the copy: without an event nobody would learn when it has ended.
    event = context._events.take()
    const begun = (): void => void (isQueued = true)
    queue(begun)
    begun()
    record(context, event, stream)
    return event
  } catch (error) {
    try {
      if (event !== undefined) context._events.giveBack(event)
      if (!isQueued || hasEndedNow(context, stream)) giveBack()
    } finally {
      context._endWait()
    }
    throw error
  }
}

function endHostCopy(context: Context, event: CUevent, giveBack: (() => void) | undefined): void {
  try {
    context._events.giveBack(event)
    giveBack?.()
  } finally {
    context._endWait()
  }
}

function record(context: Context, event: CUevent, stream: CUstream): void {
  callInContext(context.handle)
  check(cuEventRecord(event, stream), 'cuEventRecord')
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
