import { requireDevice, Status, scratch, withReason } from '@shoal/cuda-base'
import { type CUevent, cuIpcGetEventHandle, cuIpcOpenEventHandle } from '@shoal/cuda-sys/driver'
import { describeValue } from '@shoal/types'
import type { Device } from '../device.js'
import { Event } from '../event.js'
import { decodeHandle, encodeHandle, handleBytes } from './handleBytes.js'

/** What another process on this machine opens an event with. Plain data: JSON and `postMessage` carry it. */
export interface IpcEventHandle {
  readonly type: 'ipc-event'
  /** The `CUipcEventHandle`, base64. */
  readonly handle: string
}

/**
 * A handle for an event (`cuIpcGetEventHandle`), which must have been made with `interprocess: true`.
 * @throws StatusError for another one.
 */
export function ipcEventHandle(event: Event): IpcEventHandle {
  if (!(event instanceof Event)) throw new TypeError(`event must be an Event, not ${describeValue(event)}`)
  const { handle, context } = event
  const out = scratch()
  withReason([Status.invalidHandle, Status.invalidValue], 'the event was not made with { interprocess: true }', () =>
    context._call('cuIpcGetEventHandle', () => cuIpcGetEventHandle(out, handle)),
  )
  return { type: 'ipc-event', handle: encodeHandle(new Uint8Array(out.buffer, 0, handleBytes)) }
}

/** Opens an event of another process (`cuIpcOpenEventHandle`). */
export function openIpcEvent(device: Device, handle: IpcEventHandle): Event {
  if (typeof handle !== 'object' || handle === null || handle.type !== 'ipc-event') {
    throw new TypeError(`handle must be what ipcEventHandle() gave, not ${describeValue(handle)}`)
  }
  const bytes = decodeHandle(handle.handle, 'handle')
  const context = requireDevice(device, 'device').primaryContext
  const out = scratch()
  context._call('cuIpcOpenEventHandle', () => cuIpcOpenEventHandle(out, bytes))
  return Event._adopt(context, out.u64[0] as CUevent)
}
