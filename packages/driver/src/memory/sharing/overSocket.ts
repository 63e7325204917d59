import { DescriptorSocket } from '@shoal/ffi'
import {
  type DType,
  type MemoryLike,
  type OptionKeys,
  optionalOptions,
  requireInstance,
  requireWaitOptions,
  type WaitOptions,
  waitKeys,
} from '@shoal/types'
import { Device } from '../../core/device/device.js'
import { Event } from '../../core/event/event.js'
import { Stream } from '../../core/stream/stream.js'
import { DescriptorHandle } from '../handles/handles.js'
import { ipcEventHandle } from '../ipc/ipcEvent.js'
import {
  descriptorsInMessage,
  type Exported,
  exportMemory,
  furtherPieces,
  type LinkMessage,
  rangeOf,
  waysOfSocket,
} from './description.js'
import { inTurn, limited } from './limits.js'
import { SharedMemory } from './sharedMemory.js'

/** Options of sharing: when the contents are ready, and limits of the wait for the other side. */
export interface ShareOptions extends WaitOptions {
  /**
   * An event that was created with `{ interprocess: true, timing: false }` and recorded after the contents' producer.
   * The other side waits for the event before its `receive` resolves. Keep the event until then. Default: this call
   * waits for the pending work that the memory declares.
   */
  readonly event?: Event | undefined
}

export const shareKeys: OptionKeys<ShareOptions> = { event: true, ...waitKeys }

/**
 * The last send of each socket. Sends run one after the other, because memory of many pieces takes several messages.
 */
const sending = new WeakMap<object, Promise<void>>()
const receiving = new WeakMap<object, Promise<void>>()

/** Returns the checked options of sharing. @throws TypeError, RangeError; AbortedError */
export function readShareOptions(
  options: ShareOptions | undefined,
  api: string,
): { readonly event: Event | undefined; readonly wait: WaitOptions } {
  const { event, signal, timeout } = optionalOptions(options, api, shareKeys)
  if (event !== undefined) requireInstance(event, api, 'event', Event)
  return { event, wait: requireWaitOptions({ signal, timeout }, api) }
}

/** Returns the exported memory when its contents are ready, or immediately if an event was passed. */
export async function readyToSend(
  memory: MemoryLike,
  event: Event | undefined,
  wait: WaitOptions,
  api: string,
  describe: (memory: MemoryLike, api: string) => Exported,
): Promise<Exported> {
  if (event === undefined) await pendingWork(memory, wait, api)
  const own = event === undefined ? undefined : ipcEventHandle(event)
  const exported = describe(memory, api)
  return own === undefined ? exported : { ...exported, description: { ...exported.description, event: own } }
}

async function pendingWork(memory: MemoryLike, wait: WaitOptions, api: string): Promise<void> {
  const { stream, deviceOrdinal } = rangeOf(memory, api)
  if (stream === undefined || stream === null || deviceOrdinal < 0) return
  await Stream.borrow(Device.get(deviceOrdinal), stream).synchronize(wait)
}

/**
 * Sends memory to the process at a socket's other end: to {@link receiveMemory}, or to Python's `shoal_memory`. Keep
 * the memory, unless it is mapped memory, until the other side has reported that it no longer uses the memory.
 * @throws TypeError, RangeError; DisposedError; FeatureNotSupportedError when the memory cannot leave its process;
 * AbortedError, TimeoutError; SystemError
 *
 * @example
 * await sendMemory(socket, buffer)
 */
export async function sendMemory(socket: DescriptorSocket, memory: MemoryLike, options?: ShareOptions): Promise<void> {
  const api = 'sendMemory'
  requireInstance(socket, api, 'socket', DescriptorSocket)
  const { event, wait } = readShareOptions(options, api)
  await limited(wait, api, async (signal) => {
    const exported = await readyToSend(memory, event, { signal }, api, exportMemory)
    try {
      await inTurn(sending, socket, signal, () => sendDescription(socket, exported, { signal }))
    } finally {
      // The call ended before its turn, so its sources were not sent.
      for (const source of exported.sources) source.dispose()
    }
  })
}

/** Sends a description and its descriptors. Each descriptor stays open until it is sent. */
export async function sendDescription(
  socket: DescriptorSocket,
  { description, sources }: Exported,
  wait: WaitOptions,
): Promise<void> {
  const handles: DescriptorHandle[] = []
  try {
    let data: object = description
    for (let start = 0; start === 0 || start < sources.length; start += descriptorsInMessage) {
      for (const source of sources.slice(start, start + descriptorsInMessage)) {
        handles.push(source instanceof DescriptorHandle ? source : source.export('posix-fd'))
      }
      const descriptors = handles.map(({ descriptor }) => descriptor)
      await socket.send({ bytes: Buffer.from(JSON.stringify(data)), descriptors }, wait)
      for (const handle of handles.splice(0)) handle.dispose()
      data = { type: furtherPieces }
    }
  } finally {
    for (const one of [...handles, ...sources]) one.dispose()
  }
}

/**
 * Receives and opens the next memory. The caller disposes of it.
 * @throws TypeError, RangeError for another message; FeatureNotSupportedError for a device that is not visible to this
 * process; AbortedError, TimeoutError; StatusError; SystemError, such as with `code` `'ECONNRESET'`
 *
 * @example
 * using memory = await receiveMemory<'f32'>(socket, { timeout: 10_000 })
 */
export async function receiveMemory<D extends DType = DType>(
  socket: DescriptorSocket,
  options?: WaitOptions,
): Promise<SharedMemory<D>> {
  const api = 'receiveMemory'
  requireInstance(socket, api, 'socket', DescriptorSocket)
  const wait = requireWaitOptions(options, api)
  return limited(wait, api, (signal) =>
    inTurn(receiving, socket, signal, async () => {
      const next = (): Promise<LinkMessage> => receiveMessage(socket, signal)
      return SharedMemory._open<D>(await next(), next, api, { signal })
    }),
  )
}

/** Receives a message and parses its JSON; the data of other messages is undefined. */
export async function receiveMessage(socket: DescriptorSocket, signal: AbortSignal): Promise<LinkMessage> {
  const { bytes, descriptors } = await socket.receive({ signal })
  return { data: parse(bytes), descriptors, ways: waysOfSocket }
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch {
    return undefined
  }
}
