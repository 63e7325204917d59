import { closeSync } from 'node:fs'
import { DescriptorSocket } from '@shoal/ffi'
import { describeValue } from '@shoal/types'
import { requireOpenDescriptor } from './exchange.js'
import {
  DescriptorHandle,
  FabricHandle,
  type HandleContent,
  type HandleDescription,
  requireContent,
  type ShareableHandle,
} from './handles.js'

/** How long to wait for the other process. */
export interface TravelOptions {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds. */
  readonly timeout?: number | undefined
}

/**
 * Sends a handle, with what is known of it, to the process at the other end. A descriptor may be disposed of as soon as
 * the promise has resolved.
 * @throws TypeError for a Windows handle, which no socket carries, and for a descriptor that is closed or of no memory.
 */
export async function sendHandle(
  socket: DescriptorSocket,
  handle: ShareableHandle,
  options: TravelOptions = {},
): Promise<void> {
  if (!(handle instanceof DescriptorHandle || handle instanceof FabricHandle)) {
    throw new TypeError(`handle must be a DescriptorHandle or a FabricHandle, not ${describeValue(handle)}`)
  }
  requireSocket(socket)
  const descriptors = handle instanceof DescriptorHandle ? [handle.descriptor] : []
  descriptors.forEach(requireOpenDescriptor)
  await socket.send({ bytes: Buffer.from(JSON.stringify(handle)), descriptors }, options)
}

/**
 * Resolves with the next handle that {@link sendHandle} sent. It is the caller's to dispose of.
 * @param content what it must stand for.
 * @throws TypeError for anything else; AbortedError, TimeoutError; an error with `code` when the socket fails.
 */
export async function receiveHandle<C extends HandleContent>(
  socket: DescriptorSocket,
  content: C,
  options: TravelOptions = {},
): Promise<ShareableHandle<C>> {
  requireSocket(socket)
  requireContent(content)
  const { bytes, descriptors } = await socket.receive(options)
  // Whatever is wrong with the rest, the descriptors are closed.
  const [first, ...others] = descriptors
  try {
    if (others.length > 0) throw new TypeError(`one descriptor was expected, ${descriptors.length} came`)
    const facts = parse<C>(bytes)
    if (facts.content !== content) {
      throw new TypeError(`the handle is of ${describeValue(facts.content)}, not of ${describeValue(content)}`)
    }
    if (facts.type === 'posix-fd' && first === undefined) throw new TypeError('the descriptor of the handle is missing')
    if (facts.type !== 'posix-fd' && first !== undefined) {
      throw new TypeError(`a descriptor came with a handle of type ${describeValue(facts.type)}`)
    }
    return first === undefined ? FabricHandle.fromJSON(facts) : new DescriptorHandle(first, facts)
  } catch (error) {
    for (const descriptor of descriptors) closeSync(descriptor)
    throw error
  }
}

function requireSocket(socket: DescriptorSocket): void {
  if (socket instanceof DescriptorSocket) return
  throw new TypeError(`socket must be a DescriptorSocket, not ${describeValue(socket)}`)
}

function parse<C extends HandleContent>(bytes: Uint8Array): HandleDescription<C> & { readonly handle: string } {
  let data: unknown
  try {
    data = JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch (cause) {
    throw new TypeError('what came is no handle: it is not JSON', { cause })
  }
  if (typeof data !== 'object' || data === null) throw new TypeError(`what came is no handle: ${describeValue(data)}`)
  return data as HandleDescription<C> & { readonly handle: string }
}
