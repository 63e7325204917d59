import { cuProfilerStart, cuProfilerStop } from '@shoal/cuda-sys/driver'
import { requireFunction } from '@shoal/types'
import { contextOf, type DeviceOrContext } from '../../core/context/context.js'

/**
 * A profiler that was told to wait collects from now on (`cuProfilerStart`). Without one nothing happens. @throws
 * StatusError
 */
export function startProfiler(owner: DeviceOrContext): void {
  contextOf(owner, 'startProfiler')._callDriver('cuProfilerStart', cuProfilerStart)
}

/** Ends what {@link startProfiler} began (`cuProfilerStop`). */
export function stopProfiler(owner: DeviceOrContext): void {
  contextOf(owner, 'stopProfiler')._callDriver('cuProfilerStop', cuProfilerStop)
}

/**
 * Has a profiler collect while `fn` runs, and while the promise that it gives is pending. Work that was only queued may
 * be left out: wait for it in `fn`.
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
