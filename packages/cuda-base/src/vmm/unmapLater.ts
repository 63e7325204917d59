import { cuCtxSynchronize, cuMemUnmap } from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import type { Context } from '../context.js'
import { checkRelease } from '../errors.js'

/** Waits for the work of the contexts and unmaps, on a native thread. The contexts lose one child each. */
export async function unmapOffThread(address: bigint, byteLength: number, users: Iterable<Context>): Promise<void> {
  const contexts = [...users]
  try {
    for (const context of contexts) {
      if (context.disposed) continue
      context._addWait()
      try {
        await offThread({ context: context._handle }, () => cuCtxSynchronize())
      } finally {
        context._endWait()
      }
    }
    const [status = 0] = await offThread({}, () => cuMemUnmap(address, byteLength))
    checkRelease(status, 'cuMemUnmap')
  } finally {
    for (const context of contexts) context._removeChild()
  }
}
