import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Makers } from './subject.js'

/** A path where no socket is yet. */
export const socketPath = (): string => join(tmpdir(), `shoal-${randomUUID()}`)

/** What sockets between processes take. */
export const sharing = (ffi: typeof import('@shoal/ffi')): Makers => ({
  '#libraries': () => [],
  'DescriptorServer.listen#path': () => socketPath(),
  'DescriptorSocket.connect#path': () => socketPath(),
  'DescriptorSocket.adopt#descriptor': () => 10_000,
  'new DescriptorSocket#descriptor': () => 10_000,
  '#message': () => ({ bytes: new Uint8Array(1) }),
  '#socket': () => ffi.DescriptorSocket.pair()[0],
})
