import { closeDescriptor, DescriptorSocket } from '@shoal/ffi'
import {
  describeValue,
  isInstance,
  otherCopy,
  requireInstance,
  requireWaitOptions,
  type WaitOptions,
  wrongType,
} from '@shoal/types'
import { requireOpenDescriptor } from './exchange.js'
import {
  DescriptorHandle,
  descriptionOf,
  FabricHandle,
  type HandleContent,
  type HandleDescription,
  requireContent,
  type ShareableHandle,
} from './handles.js'

/**
 * Sends a handle, its content, size and device to the process at the socket's other end. After the promise resolves,
 * the handle may be disposed of.
 * @throws TypeError for a Windows handle, which sockets cannot carry, and for a descriptor that is closed or not of
 * memory; DisposedError; AbortedError, TimeoutError; SystemError when the socket fails
 * @example
 * using handle = memory.export()
 * await sendHandle(socket, handle, { timeout: 10_000 })
 */
export async function sendHandle(
  socket: DescriptorSocket,
  handle: ShareableHandle,
  options?: WaitOptions,
): Promise<void> {
  const api = 'sendHandle'
  requireInstance(socket, api, 'socket', DescriptorSocket)
  const wait = requireWaitOptions(options, api)
  if (!(isInstance(handle, DescriptorHandle) || isInstance(handle, FabricHandle))) {
    throw (
      otherCopy(handle, api, 'handle', DescriptorHandle) ??
      otherCopy(handle, api, 'handle', FabricHandle) ??
      wrongType(api, 'handle', 'a DescriptorHandle or a FabricHandle', handle)
    )
  }
  const descriptors = handle instanceof DescriptorHandle ? [requireOpenDescriptor(handle, api)] : []
  await socket.send({ bytes: Buffer.from(JSON.stringify(handle)), descriptors }, wait)
}

/**
 * Receives the next handle from {@link sendHandle}. The caller disposes of the handle.
 * @param content the expected content of the handle
 * @throws TypeError, RangeError for anything else; AbortedError, TimeoutError; SystemError when the socket fails
 * @example
 * using handle = await receiveHandle(socket, 'memory', { timeout: 10_000 })
 * const memory = PhysicalMemory.import(device, handle)
 */
export async function receiveHandle<C extends HandleContent>(
  socket: DescriptorSocket,
  content: C,
  options?: WaitOptions,
): Promise<DescriptorHandle<C> | FabricHandle<C>> {
  const api = 'receiveHandle'
  requireInstance(socket, api, 'socket', DescriptorSocket)
  requireContent(content, api)
  const { bytes, descriptors } = await socket.receive(requireWaitOptions(options, api))
  // Close the descriptors even if another part of the message is wrong.
  const [first, ...others] = descriptors
  try {
    if (others.length > 0) throw refused(`with one descriptor, not ${descriptors.length}`)
    const data = parse<C>(bytes)
    if (data.content !== content) {
      throw refused(`a handle of ${describeValue(content)}, not of ${describeValue(data.content)}`)
    }
    if (data.type === 'posix-fd' && first === undefined) throw refused('with its descriptor, and none came')
    if (data.type !== 'posix-fd' && first !== undefined) {
      throw refused(`without a descriptor for type ${describeValue(data.type)}, and one came`)
    }
    return first === undefined ? FabricHandle.fromJSON(data) : new DescriptorHandle(first, descriptionOf(data))
  } catch (error) {
    for (const descriptor of descriptors) closeDescriptor(descriptor)
    throw error
  }
}

function refused(what: string, cause?: unknown): TypeError {
  return new TypeError(`receiveHandle: the message must be ${what}`, { cause })
}

function parse<C extends HandleContent>(bytes: Uint8Array): HandleDescription<C> & { readonly handle: string } {
  let data: unknown
  try {
    data = JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch (cause) {
    throw refused('the JSON of a handle', cause)
  }
  if (typeof data !== 'object' || data === null) throw refused(`the JSON of a handle, not ${describeValue(data)}`)
  return data as HandleDescription<C> & { readonly handle: string }
}
