import { profile as profileOn, startProfiler as startOn, stopProfiler as stopOn } from '@shoal/driver/diagnostics'
import { currentDevice, type DeviceOption, onlyOwner } from '../device/currentDevice.js'

/** A profiler that was told to wait collects from now on (`cuProfilerStart`). Without one nothing happens. */
export function startProfiler(options: DeviceOption = {}): void {
  startOn(onlyOwner(options, 'startProfiler'))
}

/** Ends what {@link startProfiler} began (`cuProfilerStop`). */
export function stopProfiler(options: DeviceOption = {}): void {
  stopOn(onlyOwner(options, 'stopProfiler'))
}

/**
 * Has a profiler collect while `fn` runs, and while the promise that it gives is pending. Work that was only queued may
 * be left out: wait for it in `fn`.
 */
export function profile<T>(fn: () => T): T {
  return profileOn(currentDevice(), fn)
}
