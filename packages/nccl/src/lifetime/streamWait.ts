import {
  type CUcontext,
  type CUevent,
  type CUstream,
  cuCtxRecordEvent,
  cuCtxSynchronize,
  cuEventCreate,
  cuEventDestroy,
  cuEventRecord,
  driver,
} from '@shoal/cuda-sys/driver'
import { checkCuda } from '@shoal/driver/basics'
import { type BackgroundWork, callInContext, offThread, onAbort, waitForEvent } from '@shoal/ffi'
import { AbortedError } from '@shoal/types'

const disableTiming = 2
const notReady = 600
const out = new BigUint64Array(1)
const firstWithContextEvents = 12050
const notSupported = 801

/**
 * Resolves when the work queued on a stream so far has completed.
 *
 * `ending` ends the wait early and destroys its event, which CUDA allows before the event is reached.
 *
 * @throws StatusError of the driver if the context has failed.
 */
export function whenStreamDone(
  context: bigint,
  stream: bigint,
  background: BackgroundWork,
  ending: AbortSignal,
): Promise<void> {
  return whenRecorded(context, background, ending, (event) => {
    callInContext(context)
    checkCuda(cuEventRecord(event, stream as CUstream), 'cuEventRecord')
  })
}

/**
 * Resolves when all work of a context has completed.
 *
 * Before CUDA 12.5, and if the driver does not support context events, a thread waits for it. If the wait ends early,
 * that thread continues: an abort ends the work.
 *
 * @throws StatusError of the driver if the context has failed.
 */
export async function whenContextDone(context: bigint, background: BackgroundWork, ending: AbortSignal): Promise<void> {
  let status: number = notSupported
  if (driver.has('cuCtxRecordEvent', firstWithContextEvents)) {
    await whenRecorded(context, background, ending, (event) => {
      status = cuCtxRecordEvent(context as CUcontext, event)
      if (status !== notSupported) checkCuda(status, 'cuCtxRecordEvent')
    })
  }
  // An event that was not recorded counts as complete.
  if (status === notSupported) await whenSynchronized(context, background, ending)
}

async function whenSynchronized(context: bigint, background: BackgroundWork, ending: AbortSignal): Promise<void> {
  let unsubscribe = (): void => undefined
  const ended = new Promise<never>((_, reject) => {
    unsubscribe = onAbort(ending, () => reject(new AbortedError('cuCtxSynchronize')))
  })
  try {
    const [status = 0] = await Promise.race([offThread({ context, background }, () => void cuCtxSynchronize()), ended])
    checkCuda(status, 'cuCtxSynchronize')
  } finally {
    unsubscribe()
  }
}

async function whenRecorded(
  context: bigint,
  background: BackgroundWork,
  ending: AbortSignal,
  record: (event: CUevent) => void,
): Promise<void> {
  callInContext(context)
  checkCuda(cuEventCreate(out, disableTiming), 'cuEventCreate')
  const event = out[0] as CUevent
  try {
    record(event)
    const query = driver.address('cuEventQuery', 2000)
    const status = await waitForEvent({ context, event, query, notReady }, { background, signal: ending })
    checkCuda(status, 'cuEventQuery')
  } finally {
    callInContext(context)
    // In a failed context the event no longer exists.
    cuEventDestroy(event)
  }
}
