/** Memory that this process really shares, the right messages for it, and a check that recognizes it by its content. */
import { closeSync, openSync } from 'node:fs'
import { tmpdir } from 'node:os'
import {
  AddressRange,
  allocationGranularity,
  DescriptorSocket,
  Device,
  DeviceBuffer,
  GrowableBuffer,
  type MemoryLike,
  MemoryPool,
  PhysicalMemory,
  Stream,
  sendHandle,
} from '@shoal/driver'
import { sendMemory } from '@shoal/driver/sharing'
import type { ReceivedMessage } from '@shoal/ffi'

/** One message, or several that belong together. */
export interface Template {
  readonly name: string
  readonly messages: readonly { readonly data: unknown; readonly descriptors: readonly number[] }[]
}

export interface Memories {
  readonly device: Device
  readonly shared: Template[]
  readonly handles: readonly Template[]
  /** Descriptors of other objects. */
  readonly strays: readonly number[]
  /** Takes the first and last bytes of memory. Returns a fault, or undefined if the memory was shared here. */
  stranger(start: Uint8Array, end: Uint8Array): string | undefined
}

/** Each word holds the number of its memory and its own index, which takes this many bits. */
const indexBits = 26

function pattern(id: number, bytes: number): Uint32Array {
  const words = new Uint32Array(bytes / 4)
  for (let index = 0; index < words.length; index += 1) words[index] = (id << indexBits) | index
  return words
}

let made: Promise<Memories> | undefined

/** Creates the memory once for each process, because it takes 150 MB. */
export function memoriesOfProcess(): Promise<Memories> {
  process.env['SHOAL_DEVICE'] = 'sim'
  made ??= makeMemories()
  return made
}

async function makeMemories(): Promise<Memories> {
  const device = Device.get(0)
  const stream = Stream.create(device)
  const sizes = new Map<number, number>()
  const keep: unknown[] = []
  const fill = (memory: MemoryLike, bytes: number): void => {
    const id = sizes.size + 1
    sizes.set(id, bytes)
    DeviceBuffer.view(device, memory, 'u32', { length: bytes / 4 }).copyFromSync(pattern(id, bytes))
    keep.push(memory)
  }

  const plain = DeviceBuffer.allocate(device, 'u32', 1024)
  fill(plain, 4096)
  const options = { handleTypes: 'posix-fd' } as const
  const unit = allocationGranularity(device, options)
  const physical = PhysicalMemory.create(device, unit, options)
  const range = AddressRange.reserve(unit)
  const mapped = range.map(physical)
  fill(mapped, unit)
  const grown = [3, 66].map((pieces) => {
    const made = { maximumLength: pieces * unit, stepBytes: 1, ...options }
    const buffer = GrowableBuffer.reserve(device, 'u8', made)
    for (let count = 1; count <= pieces; count += 1) buffer.resize(count * unit)
    fill(buffer, pieces * unit)
    return buffer
  })
  const pool = MemoryPool.create(device, options)
  const pooled = pool.allocate(stream, 'u32', 1024)
  await stream.synchronize()
  fill(pooled, 4096)
  const event = device.createEvent({ interprocess: true, timing: false })
  stream.record(event)
  keep.push(stream, physical, range, pool, event)

  const [ours, theirs] = DescriptorSocket.pair()
  const record = async (name: string, count: number, send: () => Promise<void>): Promise<Template> => {
    const sent = send()
    const messages: ReceivedMessage[] = []
    for (let index = 0; index < count; index += 1) messages.push(await theirs.receive())
    await sent
    const parsed = messages.map(({ bytes, descriptors }) => ({
      data: JSON.parse(Buffer.from(bytes).toString()) as unknown,
      descriptors,
    }))
    return { name, messages: parsed }
  }
  const memory = (name: string, source: MemoryLike, count = 1, more = {}): Promise<Template> =>
    record(name, count, () => sendMemory(ours, source, more))
  const matrix = DeviceBuffer.view(device, plain, 'f32', { byteOffset: 64, length: 256 })
  const shared = [
    await memory('ipc', plain),
    await memory('slice', matrix),
    await memory('event', plain.slice(3, 500), 1, { event }),
    await memory('mapped', mapped),
    await memory('pieces', grown[0] as GrowableBuffer),
    await memory('many pieces', grown[1] as GrowableBuffer, 2),
    await memory('pool', pooled.slice(5)),
  ]
  const handle = physical.export('posix-fd')
  const poolHandle = pool.export()
  const handles = [
    await record('memory', 1, () => sendHandle(ours, handle)),
    await record('pool', 1, () => sendHandle(ours, poolHandle)),
  ]
  keep.push(ours, theirs, handle, poolHandle)

  const strays = [openSync('/dev/null', 'r'), openSync('/dev/zero', 'r+'), openSync(tmpdir(), 'r')]
  strays.push(openSync(process.execPath, 'r'), ours.descriptor, theirs.descriptor)
  const closed = openSync('/dev/null', 'r')
  closeSync(closed)
  for (const { messages } of [...shared, ...handles])
    for (const { descriptors } of messages) strays.push(...descriptors)

  const matches = (bytes: Uint8Array, id: number, offset: number): boolean =>
    bytes.every((byte, index) => {
      const at = offset + index
      return byte === (((((id << indexBits) | (at >>> 2)) >>> 0) >>> (8 * (at & 3))) & 255)
    })
  const isKnown = (bytes: Uint8Array): boolean =>
    // The bytes are too few to find their position.
    bytes.length < 8 ||
    [0, 1, 2, 3].some((skipped) => {
      const word = Buffer.from(bytes).readUInt32LE(skipped)
      const id = word >>> indexBits
      const offset = (word & (2 ** indexBits - 1)) * 4 - skipped
      return offset >= 0 && offset + bytes.length <= (sizes.get(id) ?? 0) && matches(bytes, id, offset)
    })
  // Each end is checked alone, because a sender may join pieces of several memories.
  const stranger = (...ends: Uint8Array[]): string | undefined => {
    const unknown = ends.find((bytes) => !isKnown(bytes))
    return unknown && `memory that nobody shared: ${Buffer.from(unknown).toString('hex')}`
  }
  kept.push(keep)
  return { device, shared, handles, strays, stranger }
}

/** Keeps objects alive until the process ends. */
const kept: unknown[] = []
