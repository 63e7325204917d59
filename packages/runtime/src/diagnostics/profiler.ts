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
 * Profiles while `fn` runs and until its promise settles.
 *
 * The profiler may miss work that was only queued, so wait for the work in `fn`.
 */
export function profile<T>(fn: () => T): T {
  return profileOn(currentDevice(), fn)
}
