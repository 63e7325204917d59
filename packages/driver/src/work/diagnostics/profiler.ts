import { cuProfilerStart, cuProfilerStop } from '@shoal/cuda-sys/driver'
import { requireFunction } from '@shoal/types'
import { contextOf, type DeviceOrContext } from '../../core/context/context.js'

/**
 * Starts the collection of a waiting profiler (`cuProfilerStart`). Without a profiler nothing happens. @throws
 * StatusError
 */
export function startProfiler(owner: DeviceOrContext): void {
  contextOf(owner, 'startProfiler')._callDriver('cuProfilerStart', cuProfilerStart)
}

/** Stops the collection (`cuProfilerStop`). */
export function stopProfiler(owner: DeviceOrContext): void {
  contextOf(owner, 'stopProfiler')._callDriver('cuProfilerStop', cuProfilerStop)
}

/**
 * Lets a profiler collect while `fn` runs, and until the promise of `fn` settles. The profile may omit work that is
 * only queued, so wait for it in `fn`.
 *
 * @example
 * await profile(device, async () => {
 *   axpy.launch({ grid: 64, block: 256, stream }, 2, x, y, x.length)
 *   await stream.synchronize()
 * })
 */
export function profile<T>(owner: DeviceOrContext, fn: () => T): T {
  const context = contextOf(owner, 'profile')
  requireFunction(fn, 'profile', 'fn')
  startProfiler(context)
  let result: T
  try {
    result = fn()
  } catch (error) {
    stopProfiler(context)
    throw error
  }
  if (result instanceof Promise) return result.finally(() => stopProfiler(context)) as T
  stopProfiler(context)
  return result
}
