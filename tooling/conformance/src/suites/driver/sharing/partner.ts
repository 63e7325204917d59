import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import {
  DescriptorHandle,
  DescriptorSocket,
  type HandleContent,
  receiveHandle,
  type ShareableHandle,
  sendHandle,
} from '@shoal/driver'
import type { CaseContext } from '../../../suite.js'
import { Child, type ProcessEnd, RemoteError } from '../../../support/child.js'
import { mapNew, someBytes } from '../../../support/mapping.js'

export const processScript = fileURLToPath(new URL('memoryProcess.js', import.meta.url))

/** Starts a process and returns it with its socket. */
export function startPartner(
  t: CaseContext,
  environment: Readonly<Record<string, string>> = {},
): { readonly child: Child; readonly socket: DescriptorSocket } {
  const [socket, theirs] = DescriptorSocket.pair()
  t.own(socket)
  const child = Child.start(t, processScript, { descriptor: theirs.descriptor, environment })
  theirs.dispose()
  return { child, socket }
}

/** Sends a handle, then disposes of it. */
export async function hand(socket: DescriptorSocket, handle: ShareableHandle): Promise<void> {
  await sendHandle(socket, handle)
  if (handle instanceof DescriptorHandle) handle.dispose()
}

/** Starts a process that receives memory of this one. Returns the process and the facts that both know. */
export async function share(t: CaseContext, options: { readonly access?: 'read'; readonly device?: number } = {}) {
  const byteLength = someBytes(t, t.device)
  const { physical, bytes, mapped } = mapNew(t, t.device, byteLength, { isShared: true })
  const data = t.random.bytes(byteLength)
  bytes.copyFromSync(data)
  const { child, socket } = startPartner(t)
  const ready = child.run('receiveMemory', options)
  await hand(socket, physical.export())
  assert.equal(await ready, byteLength)
  return { physical, bytes, mapped, data, child, socket }
}

/** Matches an error of the other process. */
export function failed(check: (failure: RemoteError['failure']) => boolean): (error: unknown) => boolean {
  return (error) => error instanceof RemoteError && check(error.failure)
}

/** Sends a handle through a socket with other facts than its own. */
export async function exportAs<C extends HandleContent>(
  handle: DescriptorHandle,
  facts: { readonly content: C; readonly byteLength?: number },
): Promise<DescriptorHandle<C>> {
  const [left, right] = DescriptorSocket.pair()
  const text = JSON.stringify({ ...handle.toJSON(), ...facts })
  await left.send({ bytes: Buffer.from(text), descriptors: [handle.descriptor] })
  const arrived = await receiveHandle(right, facts.content)
  left.dispose()
  right.dispose()
  return arrived as DescriptorHandle<C>
}

/** The other process must end without an error. */
export async function leaves(child: Child): Promise<void> {
  assert.deepEqual(await child.leave(), { code: 0, signal: null } satisfies ProcessEnd)
}
