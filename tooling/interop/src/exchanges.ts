import { createHash, randomBytes } from 'node:crypto'
import {
  AddressRange,
  allocationGranularity,
  type Device,
  DeviceBuffer,
  IpcMemory,
  type IpcMemoryHandle,
  ipcMemoryHandle,
  MemoryPool,
  PhysicalMemory,
  type PoolPointer,
  receiveHandle,
  type ShareableHandle,
  type Stream,
  sendHandle,
} from '@shoal/driver'
import { answerTimeout, type PythonPeer } from './pythonPeer.js'

/** How one process shares memory with the other. */
export type SharingMethod = 'ipc' | 'descriptor' | 'pool'
export const sharingMethods: readonly SharingMethod[] = ['ipc', 'descriptor', 'pool']

export const methodTitles: Readonly<Record<SharingMethod, string>> = {
  ipc: 'legacy IPC handle',
  descriptor: 'POSIX descriptor',
  pool: 'memory pool and pool pointer',
}

type Bytes = DeviceBuffer<'u8'>
const handleTransfer = { timeout: answerTimeout }
/** No multiple of a page or granule. The method `descriptor` needs whole granules instead. */
const oddBytes = 3 * 1024 * 1024 + 77

/** Memory that one side shares, as the other side sees it. */
interface Shared {
  readonly buffer: Bytes
  release(): void
}

/**
 * Node makes memory of random bytes. Python compares and inverts it. Then Node compares. Resolves with the length.
 * @throws Error that says which side found a difference
 */
export async function nodeToPython(method: SharingMethod, device: Device, peer: PythonPeer): Promise<number> {
  const data = new Uint8Array(randomBytes(method === 'descriptor' ? granules(device) : oddBytes))
  const shared = await exporters[method](device, data, peer)
  try {
    const { sha256 } = await peer.answer<{ readonly sha256: string }>()
    requireSame('Python read', sha256, checksum(data))
    requireBytes('what Python wrote back', shared.buffer.toArraySync(), inverse(data))
    await peer.request({ command: 'release' })
    await peer.answer()
  } finally {
    shared.release()
  }
  return data.length
}

/** The other direction: Python makes the memory, Node compares and inverts it, then Python compares. */
export async function pythonToNode(method: SharingMethod, device: Device, peer: PythonPeer): Promise<number> {
  await peer.request({ command: 'export', kind: method, bytes: method === 'descriptor' ? granules(device) : oddBytes })
  const { sha256, shared } = await importers[method](device, peer)
  const { length } = shared.buffer
  try {
    const data = shared.buffer.toArraySync()
    requireSame('Node read', checksum(data), sha256)
    shared.buffer.copyFromSync(inverse(data))
    // Python may use another stream.
    device.primaryContext.synchronizeSync()
    await peer.request({ command: 'check' })
    requireSame('Python found', (await peer.answer<{ readonly sha256: string }>()).sha256, checksum(inverse(data)))
  } finally {
    shared.release()
  }
  await peer.request({ command: 'release' })
  await peer.answer()
  return length
}

const exporters: Readonly<
  Record<SharingMethod, (device: Device, data: Uint8Array<ArrayBuffer>, peer: PythonPeer) => Promise<Shared>>
> = {
  async ipc(device, data, peer) {
    // Shares a part of an allocation, so that the offset must arrive too.
    const whole = DeviceBuffer.allocate(device, 'u8', data.length + 512)
    const buffer = whole.slice(256, 256 + data.length).copyFromSync(data)
    await peer.request({ command: 'import', kind: 'ipc', handle: ipcMemoryHandle(buffer), sha256: checksum(data) })
    return { buffer, release: () => whole.dispose() }
  },

  async descriptor(device, data, peer) {
    const memory = PhysicalMemory.create(device, data.length, { handleTypes: 'posix-fd' })
    const shared = mapped(device, memory)
    shared.buffer.copyFromSync(data)
    await peer.request({ command: 'import', kind: 'descriptor', sha256: checksum(data) })
    await send(peer, memory.export())
    memory.dispose()
    return shared
  },

  async pool(device, data, peer) {
    const pool = MemoryPool.create(device, { handleTypes: 'posix-fd' })
    const stream = device.createStream()
    const buffer = pool.allocate(stream, 'u8', data.length)
    buffer.copyFromSync(data, { stream })
    const pointer = pool.exportPointer(buffer)
    await peer.request({ command: 'import', kind: 'pool', pointer, sha256: checksum(data) })
    await send(peer, pool.export())
    return pooled(pool, stream, buffer)
  },
}

interface Imported {
  readonly sha256: string
  readonly shared: Shared
}

const importers: Readonly<Record<SharingMethod, (device: Device, peer: PythonPeer) => Promise<Imported>>> = {
  async ipc(device, peer) {
    const { handle, sha256 } = await peer.answer<{ handle: IpcMemoryHandle<'u8'>; sha256: string }>()
    const memory = IpcMemory.open(device, handle)
    return { sha256, shared: { buffer: memory.buffer, release: () => memory.dispose() } }
  },

  async descriptor(device, peer) {
    const { sha256 } = await peer.answer<{ sha256: string }>()
    const handle = await receiveHandle(peer.socket, 'memory', handleTransfer)
    try {
      const memory = PhysicalMemory.import(device, handle)
      const shared = mapped(device, memory)
      memory.dispose()
      return { sha256, shared }
    } finally {
      close(handle)
    }
  },

  async pool(device, peer) {
    const { pointer, sha256 } = await peer.answer<{ pointer: PoolPointer<'u8'>; sha256: string }>()
    const handle = await receiveHandle(peer.socket, 'pool', handleTransfer)
    try {
      const pool = MemoryPool.import(device, handle)
      const stream = device.createStream()
      return { sha256, shared: pooled(pool, stream, pool.importPointer(stream, pointer)) }
    } finally {
      close(handle)
    }
  },
}

function mapped(device: Device, memory: PhysicalMemory): Shared {
  const range = AddressRange.reserve(memory.byteLength)
  const mapping = range.map(memory, { access: [{ place: device, access: 'readWrite' }] })
  return {
    buffer: DeviceBuffer.view(device, mapping, 'u8'),
    release() {
      mapping.dispose()
      range.dispose()
    },
  }
}

function pooled(pool: MemoryPool, stream: Stream, buffer: Bytes): Shared {
  return {
    buffer,
    release() {
      buffer.dispose()
      stream.synchronizeSync()
      stream.dispose()
      pool.dispose()
    },
  }
}

async function send(peer: PythonPeer, handle: ShareableHandle): Promise<void> {
  try {
    await sendHandle(peer.socket, handle, handleTransfer)
  } finally {
    close(handle)
  }
}

function close(handle: ShareableHandle): void {
  if ('dispose' in handle) handle.dispose()
}

function granules(device: Device): number {
  return 2 * allocationGranularity(device, { handleTypes: 'posix-fd' })
}

function checksum(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

function inverse(data: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(data, (byte) => 255 - byte)
}

function requireSame(what: string, found: string, wanted: string): void {
  if (found !== wanted) throw new Error(`${what} other bytes: sha256 ${found}, not ${wanted}`)
}

function requireBytes(what: string, found: Uint8Array, wanted: Uint8Array): void {
  let wrong = 0
  for (let i = 0; i < wanted.length; i += 1) if (found[i] !== wanted[i]) wrong += 1
  if (wrong > 0) throw new Error(`${what}: ${wrong} of ${wanted.length} bytes are wrong`)
}
