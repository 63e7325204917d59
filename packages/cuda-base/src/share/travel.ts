import type { DescriptorSocket } from '@shoal/ffi'
import { describeValue } from '../checks.js'
import {
  DescriptorHandle,
  FabricHandle,
  type HandleContent,
  type HandleDescription,
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
 * @throws TypeError for a Windows handle, which no socket carries.
 */
export async function sendHandle(
  socket: DescriptorSocket,
  handle: ShareableHandle,
  options: TravelOptions = {},
): Promise<void> {
  if (!(handle instanceof DescriptorHandle || handle instanceof FabricHandle)) {
    throw new TypeError(`handle must be a DescriptorHandle or a FabricHandle, not ${describeValue(handle)}`)
  }
  const descriptors = handle instanceof DescriptorHandle ? [handle.descriptor] : []
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
  const { bytes, descriptors } = await socket.receive(options)
  const [first, ...others] = descriptors.map((descriptor) => adopt(descriptor, bytes))
  try {
    if (others.length > 0) throw new TypeError(`one descriptor was expected, ${descriptors.length} came`)
    const handle = first ?? FabricHandle.fromJSON(parse(bytes) as HandleDescription<C> & { readonly handle: string })
    if (handle.content !== content) throw new TypeError(`the handle is of a ${handle.content}, not of a ${content}`)
    return handle as ShareableHandle<C>
  } catch (error) {
    for (const handle of [first, ...others]) handle?.dispose()
    throw error
  }
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch (cause) {
    throw new TypeError('what came is no handle: it is not JSON', { cause })
  }
}

/** The descriptor is wrapped first, so that it is closed whatever is wrong with the rest. */
function adopt(descriptor: number, bytes: Uint8Array): DescriptorHandle {
  try {
    return new DescriptorHandle(descriptor, parse(bytes) as HandleDescription)
  } catch (error) {
    new DescriptorHandle(descriptor, { content: 'pool', byteLength: 0 }).dispose()
    throw error
  }
}
