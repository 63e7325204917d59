import { profile as profileOn, startProfiler as startOn, stopProfiler as stopOn } from '@shoal/driver/diagnostics'
import { currentDevice, type DeviceOption, onlyOwner } from '../device/currentDevice.js'

/** Starts a waiting profiler (`cuProfilerStart`). Without a profiler, the call does nothing. */
export function startProfiler(options: DeviceOption = {}): void {
  startOn(onlyOwner(options, 'startProfiler'))
}

/** Stops the profiler (`cuProfilerStop`). */
export function stopProfiler(options: DeviceOption = {}): void {
  stopOn(onlyOwner(options, 'stopProfiler'))
}

/**
 * Profiles `fn`, and the promise that it returns.
 *
 * The profiler may miss work that was only queued: wait for it in `fn`.
 */
export function profile<T>(fn: () => T): T {
  return profileOn(currentDevice(), fn)
}
