import { type Event, type IpcEventHandle, openIpcEvent as openOn } from '@shoal/driver/shared'
import { type DeviceOption, onlyOwner } from '../device/currentDevice.js'

/**
 * Opens an event of another process on the current device, or on the one named (`cudaIpcOpenEventHandle`).
 * @throws TypeError, RangeError for what is no such handle; StatusError
 */
export function openIpcEvent(handle: IpcEventHandle, options: DeviceOption = {}): Event {
  return openOn(onlyOwner(options, 'openIpcEvent'), handle)
}
