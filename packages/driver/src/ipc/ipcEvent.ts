import { contextOf, type DeviceOrContext, Event, Status, scratch, withReason } from '@shoal/cuda-base'
import type { CUevent } from '@shoal/cuda-sys/driver'
import { requireInstance, wrongType } from '@shoal/types'
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
  requireInstance(event, 'ipcEventHandle', 'event', Event)
  const { handle, context } = event
  const out = scratch()
  withReason([Status.invalidHandle, Status.invalidValue], 'the event was not made with { interprocess: true }', () =>
    context._call('ipcGetEventHandle', out, handle),
  )
  return { type: 'ipc-event', handle: encodeHandle(new Uint8Array(out.buffer, 0, handleBytes)) }
}

/** Opens an event of another process (`cuIpcOpenEventHandle`). */
export function openIpcEvent(owner: DeviceOrContext, handle: IpcEventHandle): Event {
  if (typeof handle !== 'object' || handle === null || handle.type !== 'ipc-event') {
    throw wrongType('openIpcEvent', 'handle', 'what ipcEventHandle() gave', handle)
  }
  const bytes = decodeHandle(handle.handle, 'handle')
  const context = contextOf(owner, 'openIpcEvent')
  const out = scratch()
  context._call('ipcOpenEventHandle', out, bytes)
  return Event._adopt(context, out.u64[0] as CUevent)
}
