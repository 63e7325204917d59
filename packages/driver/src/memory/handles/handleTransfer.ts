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
 * Sends a handle, with its content, size and device, to the process at the other end of the socket. The handle may be
 * disposed of once the promise has resolved.
 * @throws TypeError for a Windows handle, which no socket carries, and for a descriptor that is closed or of no memory;
 * DisposedError; AbortedError, TimeoutError; SystemError when the socket fails.
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
 * Resolves with the next handle that {@link sendHandle} sent. It is the caller's to dispose of.
 * @param content what it must stand for.
 * @throws TypeError, RangeError for anything else; AbortedError, TimeoutError; SystemError when the socket fails.
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
  // Whatever is wrong with the rest, the descriptors are closed.
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
