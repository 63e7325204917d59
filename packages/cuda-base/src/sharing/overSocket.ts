import { Device, Event, ipcEventHandle, Stream } from '@shoal/cuda-base'
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
import { type Exported, exportMemory, rangeOf } from './description.js'
import { SharedMemory } from './sharedMemory.js'

/** When the contents of shared memory are there, and how long to wait for the other side. */
export interface ShareOptions extends WaitOptions {
  /**
   * An event made with `{ interprocess: true, timing: false }` and recorded behind what makes the contents: the other side waits for it
   * before it has the memory. It must live until then. Default: what is pending on the memory, as far as it says so, is waited for here.
   */
  readonly event?: Event | undefined
}

export const shareKeys: OptionKeys<ShareOptions> = { event: true, ...waitKeys }

/** The options of sharing. @throws TypeError, RangeError; AbortedError */
export function readShareOptions(
  options: ShareOptions | undefined,
  api: string,
): { readonly event: Event | undefined; readonly wait: WaitOptions } {
  const { event, signal, timeout } = optionalOptions(options, api, shareKeys)
  if (event !== undefined) requireInstance(event, api, 'event', Event)
  return { event, wait: requireWaitOptions({ signal, timeout }, api) }
}

/** What is sent of memory once its contents are there, or with the event after which they are. */
export async function readyToSend(
  memory: MemoryLike,
  event: Event | undefined,
  wait: WaitOptions,
  api: string,
  describe: (memory: MemoryLike, api: string) => Exported,
): Promise<Exported> {
  if (event === undefined) await pendingWork(memory, wait, api)
  const own = event === undefined ? undefined : ipcEventHandle(event)
  const { description, handle } = describe(memory, api)
  const told = own === undefined ? description : { ...description, event: own }
  return { description: told, ...(handle === undefined ? {} : { handle }) }
}

async function pendingWork(memory: MemoryLike, wait: WaitOptions, api: string): Promise<void> {
  const { stream, deviceOrdinal } = rangeOf(memory, api)
  if (stream === undefined || stream === null || deviceOrdinal < 0) return
  await Stream.borrow(Device.get(deviceOrdinal), stream).synchronize(wait)
}

/**
 * Sends memory to the process at the other end of a socket: to {@link receiveMemory}, or Python's `shoal_memory`. Unless it was mapped it must
 * stay until the other side has told that it is done.
 * @throws TypeError, RangeError; DisposedError; FeatureNotSupportedError where it cannot leave its process; AbortedError, TimeoutError; SystemError
 *
 * @example
 * await sendMemory(socket, buffer)
 */
export async function sendMemory(socket: DescriptorSocket, memory: MemoryLike, options?: ShareOptions): Promise<void> {
  const api = 'sendMemory'
  requireInstance(socket, api, 'socket', DescriptorSocket)
  const { event, wait } = readShareOptions(options, api)
  await sendDescription(socket, await readyToSend(memory, event, wait, api, exportMemory), wait)
}

/** Sends a description and the descriptor beside it, which is closed then. */
export async function sendDescription(
  socket: DescriptorSocket,
  { description, handle }: Exported,
  wait: WaitOptions,
): Promise<void> {
  try {
    const descriptors = handle === undefined ? [] : [handle.descriptor]
    await socket.send({ bytes: Buffer.from(JSON.stringify(description)), descriptors }, wait)
  } finally {
    handle?.dispose()
  }
}

/**
 * Resolves with the memory that came next, opened. It is the caller's to dispose of.
 * @throws TypeError, RangeError for another message; FeatureNotSupportedError for a device that this process does not see; AbortedError,
 * TimeoutError; StatusError; SystemError, such as with `code` `'ECONNRESET'`
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
  const { bytes, descriptors } = await socket.receive(wait)
  return SharedMemory._open<D>(parsed(bytes), descriptors, api, wait)
}

/** JSON, or undefined for what is none. */
export function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch {
    return undefined
  }
}
