import { createHostCallback, inNextTurn } from '@shoal/ffi'
import { doneNow, requireSynchronous, settleInTime } from '@shoal/types'
import { capturedCallback, isCaptured } from '../context/capturing.js'
import { Status } from '../errors.js'
import { streamStatus } from '../waiting/streamStatus.js'
import type { Stream } from './stream.js'

/** Calls `fn` on this thread after the earlier work of the stream, as `Stream.hostFunction` documents. */
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
    // Host functions are forgotten once the context has an error; the event behind this one tells.
    streamStatus(context, stream).then((status) => {
      // The call is on its way to this thread, which may have nothing else that keeps it.
      const untilCalled = (): void => void (isCalled || inNextTurn(untilCalled))
      if (status === Status.success) return untilCalled()
      callback.dispose()
      reject(context._error(status, 'launchHostFunc'))
    }, reject)
  })
}
