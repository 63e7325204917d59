import { createHostCallback, inNextTurn } from '@shoal/ffi'
import { doneNow, requireSynchronous, settleInTime } from '@shoal/types'
import { capturedCallback, isCaptured } from '../context/capturing.js'
import { Status } from '../errors.js'
import { streamStatus } from '../waiting/streamStatus.js'
import type { Stream } from './stream.js'

/** Queues `fn` to run on this thread after the stream's earlier work. `Stream.hostFunction` documents it. */
export function queueHostFunction(stream: Stream, fn: () => void, api: string): Promise<void> {
  const { handle, context } = stream
  if (isCaptured(context, handle)) {
    const { functionAddress, userData } = capturedCallback(context, handle, fn, api).callback
    context._call('launchHostFunc', handle, functionAddress, userData)
    return doneNow()
  }
  return new Promise<void>((resolve, reject) => {
    let isCalled = false
    const callback = createHostCallback(() => {
      isCalled = true
      callback.dispose()
      try {
        requireSynchronous<unknown>(fn(), api)
        settleInTime(resolve)
      } catch (error) {
        reject(error)
      }
    })
    try {
      context._call('launchHostFunc', handle, callback.functionAddress, callback.userData)
    } catch (error) {
      callback.dispose()
      throw error
    }
    // The driver skips host functions after a context error. The event behind this one reports the error.
    streamStatus(context, stream).then((status) => {
      // The call is on its way to this thread. Keep the thread alive until it arrives.
      const untilCalled = (): void => void (isCalled || inNextTurn(untilCalled))
      if (status === Status.success) return untilCalled()
      callback.dispose()
      reject(context._error(status, 'launchHostFunc'))
    }, reject)
  })
}
