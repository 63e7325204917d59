import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Makers } from './subject.js'

/** Returns a path at which no socket exists. */
export const socketPath = (): string => join(tmpdir(), `shoal-${randomUUID()}`)

/** Returns values for the functions of sockets between processes. */
export const sharing = (ffi: typeof import('@shoal/ffi')): Makers => ({
  '#libraries': () => [],
  'DescriptorServer.listen#path': () => socketPath(),
  'DescriptorSocket.connect#path': () => socketPath(),
  'DescriptorSocket.adopt#descriptor': () => 10_000,
  'new DescriptorSocket#descriptor': () => 10_000,
  '#message': () => ({ bytes: new Uint8Array(1) }),
  '#socket': () => ffi.DescriptorSocket.pair()[0],
})
