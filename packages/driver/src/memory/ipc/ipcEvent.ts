import type { CUevent } from '@shoal/cuda-sys/driver'
import { propertyOf, requireInstance, wrongType } from '@shoal/types'
import { contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { Status } from '../../core/errors.js'
import { Event } from '../../core/event/event.js'
import { scratch } from '../../core/native.js'
import { withReason } from '../handles/handleKinds.js'
import { decodeHandle, encodeHandle, handleBytes } from './handleBytes.js'

/** An event handle for another process on this machine. It is plain data for JSON and `postMessage`. */
export interface IpcEventHandle {
  /** Identifies this kind of handle in JSON. */
  readonly type: 'ipc-event'
  /** The `CUipcEventHandle` in base64. */
  readonly handle: string
}

/**
 * Returns a handle with which another process on this machine can open the event (`cuIpcGetEventHandle`).
 * @throws TypeError; StatusError unless the event was created with `interprocess: true`; DisposedError
 * @example
 * using event = device.createEvent({ interprocess: true, timing: false })
 * socket.send({ bytes: Buffer.from(JSON.stringify(ipcEventHandle(event))) })
 */
export function ipcEventHandle(event: Event): IpcEventHandle {
  const { handle, context } = requireInstance(event, 'ipcEventHandle', 'event', Event) as Event
  const out = scratch()
  withReason([Status.invalidHandle, Status.invalidValue], 'the event was not made with { interprocess: true }', () =>
    context._call('ipcGetEventHandle', out, handle),
  )
  return { type: 'ipc-event', handle: encodeHandle(new Uint8Array(out.buffer, 0, handleBytes)) }
}

/**
 * Opens another process's event (`cuIpcOpenEventHandle`).
 * @throws TypeError, RangeError for other values; StatusError
 */
export function openIpcEvent(owner: DeviceOrContext, handle: IpcEventHandle): Event {
  const api = 'openIpcEvent'
  const context = contextOf(owner, api)
  if (propertyOf(handle, 'type') !== 'ipc-event') {
    throw wrongType(api, 'handle', 'what ipcEventHandle() returned', handle)
  }
  const bytes = decodeHandle(handle.handle, api)
  const out = scratch()
  context._call('ipcOpenEventHandle', out, bytes)
  return Event._adopt(context, out.u64[0] as CUevent)
}
