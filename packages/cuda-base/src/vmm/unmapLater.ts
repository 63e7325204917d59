import { cuCtxSynchronize, cuMemUnmap } from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import type { Context } from '../context.js'
import { checkRelease } from '../errors.js'

/**
 * Waits for the work of the contexts and unmaps, on a native thread. Until then nobody resets the contexts. They lose one
 * child each.
 */
export async function unmapOffThread(address: bigint, byteLength: number, users: Iterable<Context>): Promise<void> {
  const contexts = [...users]
  const waiting: Context[] = []
  try {
    for (const context of contexts) {
      if (context.disposed) continue
      context._addWait()
      waiting.push(context)
      await offThread({ context: context._handle }, () => cuCtxSynchronize())
    }
    const [status = 0] = await offThread({}, () => cuMemUnmap(address, byteLength))
    checkRelease(status, 'cuMemUnmap')
  } finally {
    for (const context of waiting) context._endWait()
    for (const context of contexts) context._removeChild()
  }
}
