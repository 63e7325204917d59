import { type Event, type IpcEventHandle, openIpcEvent as openOn } from '@shoal/driver/shared'
import { type DeviceOption, onlyOwner } from '../device/currentDevice.js'

/**
 * Opens an event of another process on the current or the given device (`cudaIpcOpenEventHandle`).
 *
 * @throws TypeError, RangeError for an invalid handle; StatusError
 */
export function openIpcEvent(handle: IpcEventHandle, options: DeviceOption = {}): Event {
  return openOn(onlyOwner(options, 'openIpcEvent'), handle)
}
