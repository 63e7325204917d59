import type { CUstream } from '@shoal/cuda-sys/driver'
import { DisposedError, type StreamArgument, toStreamHandle } from '@shoal/types'
import type { Context } from '../context/context.js'
import { processIsEnding } from '../lifetime.js'
import { scratch } from '../native.js'

export function createHandle(context: Context, bits: number, priority: number): CUstream {
  const out = scratch()
  context._call('streamCreateWithPriority', out, bits, priority)
  return out.u64[0] as CUstream
}

/** Destroys a stream. Queued work still completes, because the driver frees the stream afterwards. */
export function destroyHandle(context: Context, handle: CUstream): void {
  try {
    if (!context.disposed && !processIsEnding()) context._events.leaveBehind(handle)
  } finally {
    try {
      context._release('streamDestroy', handle)
    } finally {
      context._removeChild()
    }
  }
}

/** Whether the owner of a stream was disposed of. */
export function isDisposed(source: StreamArgument): boolean {
  try {
    toStreamHandle(source)
    return false
  } catch (error) {
    // An object of another package reports its disposal only with this error.
    if (error instanceof DisposedError) return true
    throw error
  }
}
