// Tests memory in several pieces behind one range of addresses. Each piece has a separate descriptor.
import { MessageChannel } from 'node:worker_threads'
import type { GrowableBuffer as Growing, PhysicalMemory as Physical } from '@shoal/driver/shared'
import { DescriptorSocket } from '@shoal/ffi'
import { FeatureNotSupportedError, type MemoryLike, memoryProtocol, SystemError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { descriptors, peersOfTests } from './support/sharingPeer.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { AddressRange, allocationGranularity, Device, DeviceBuffer, GrowableBuffer, PhysicalMemory } = await import(
  '@shoal/driver/shared'
)
const { receive, receiveMemory, sendMemory, share } = await import('@shoal/driver/sharing')

const device = Device.get(0)
const second = Device.get(1)
const handleTypes = 'posix-fd'
const unit = allocationGranularity(device, { handleTypes })
const limit = { timeout: 60_000 }

/** A buffer of bytes whose pieces have these sizes, in units. */
function grown(sizes: readonly number[], maximum = 1000) {
  const buffer = GrowableBuffer.reserve(device, 'u8', { maximumLength: maximum * unit, stepBytes: 1, handleTypes })
  let length = 0
  for (const size of sizes) {
    length += size * unit
    buffer.resize(length)
  }
  return buffer
}

/** Writes a few bytes around the end of each piece. Returns their positions and expected values. */
function mark({ buffer, length }: Growing<'u8'>, ends: readonly number[]) {
  const places = [0, ...ends.flatMap((end) => [end * unit - 1, end * unit]), length - 1]
  const indexes = [...new Set(places.filter((place) => place < length))]
  const values = indexes.map((_, order) => (order * 7 + 3) % 251)
  for (const [order, index] of indexes.entries()) buffer.slice(index, index + 1).fillSync(values[order] as number)
  return { indexes, values }
}

const endsOf = (sizes: readonly number[]): number[] =>
  sizes.map((_, i) => sizes.slice(0, i + 1).reduce((a, b) => a + b))

/** Memory of another package at an address. */
const bytesAt = (address: bigint, byteLength: number): MemoryLike => ({
  [memoryProtocol]: { version: 0, address, byteLength, deviceOrdinal: 0, context: 0n, dtype: 'u8', length: byteLength },
})

const start = peersOfTests()

describe('sharing a buffer that has grown', () => {
  test.each(['process', 'thread'] as const)('keeps one contiguous address range in another %s', async (kind) => {
    const other = await start(kind)
    const sizes = [1, 3, 2, 1]
    using buffer = grown(sizes)
    const { indexes, values } = mark(buffer, endsOf(sizes))
    const opened = other.tell('open', limit)
    const { way, released } = await share(other.channel, buffer, limit)
    expect(way).toBe(kind === 'thread' ? 'process' : 'posix-fd')
    expect((await opened).result).toMatchObject({ way, dtype: 'u8', shape: [7 * unit], byteLength: 7 * unit })
    expect((await other.tell('at', indexes)).result).toEqual(values)
    for (const index of indexes) await other.tell('set', [index, 200])
    for (const index of indexes) expect(buffer.buffer.slice(index, index + 1).toArraySync()[0]).toBe(200)
    await other.tell('dispose')
    await released
  })

  test('transfers only the pieces that the shared part touches', async () => {
    const [ours, theirs] = DescriptorSocket.pair()
    using buffer = grown([1, 2, 1, 1])
    buffer.buffer.fillSync(0)
    for (const [from, to] of [
      [unit - 3, unit + 5],
      [unit, 3 * unit],
      [unit + 17, 3 * unit + 1],
      [3 * unit, 5 * unit],
      [4 * unit + 1, 4 * unit + 2],
      [1, 5 * unit - 1],
    ] as const) {
      const part = buffer.buffer.slice(from, to)
      part.slice(0, 1).fillSync(1)
      part.slice(-1).fillSync(2)
      await sendMemory(ours, part, limit)
      using memory = await receiveMemory<'u8'>(theirs, limit)
      expect([memory.length, memory.way]).toEqual([to - from, 'posix-fd'])
      const ends = memory.buffer
      const last = to - from - 1
      expect([ends.slice(0, 1).toArraySync()[0], ends.slice(last).toArraySync()[0]]).toEqual([last === 0 ? 2 : 1, 2])
    }
    for (const socket of [ours, theirs]) socket.dispose()
  })

  test("leaves the receiver's part unchanged when the buffer grows or shrinks later", async () => {
    const other = await start('process')
    using buffer = grown([1, 1])
    buffer.buffer.fillSync(1)
    const opened = other.tell('open', limit)
    const { released } = await share(other.channel, buffer, limit)
    await opened
    buffer.resize(4 * unit)
    buffer.buffer.slice(2 * unit).fillSync(2)
    buffer.buffer.slice(0, 1).fillSync(9)
    expect((await other.tell('at', [0, 2 * unit - 1])).result).toEqual([9, 1])
    expect((await other.tell('at', [2 * unit])).error).toMatchObject({ name: 'RangeError' })
    buffer.resize(unit)
    expect((await other.tell('at', [0, unit, 2 * unit - 1])).result).toEqual([9, 1, 1])
    await other.tell('set', [0, 5])
    expect(buffer.buffer.slice(0, 1).toArraySync()[0]).toBe(5)
    await other.tell('dispose')
    await released
    // Sharing it again uses the current pieces, because freed pieces were replaced.
    buffer
      .resize(3 * unit)
      .buffer.slice(unit)
      .fillSync(7)
    const again = other.tell('open', limit)
    const second = await share(other.channel, buffer, limit)
    expect((await again).result).toMatchObject({ shape: [3 * unit] })
    expect((await other.tell('at', [0, unit, 3 * unit - 1])).result).toEqual([5, 7, 7])
    await other.tell('dispose')
    await second.released
  })

  test('keeps the memory after the sender disposed it', async () => {
    const other = await start('process')
    const buffer = grown([2, 1, 1])
    const { indexes, values } = mark(buffer, [2, 3])
    const opened = other.tell('open', limit)
    const { released } = await share(other.channel, buffer, limit)
    await opened
    buffer.dispose()
    expect((await other.tell('at', indexes)).result).toEqual(values)
    await other.tell('dispose')
    await released
  })

  test.each([64, 65, 128, 200])('works for %i pieces, with 64 descriptors per message', async (count) => {
    const other = await start('process')
    const sizes = Array.from({ length: count }, () => 1)
    using buffer = grown(sizes)
    const { indexes, values } = mark(buffer, endsOf(sizes))
    const held = async (): Promise<number> => (await other.tell('descriptors')).result as unknown as number
    const once = async (): Promise<number> => {
      const opened = other.tell('open', limit)
      const { released } = await share(other.channel, buffer, limit)
      await opened
      expect((await other.tell('at', indexes)).result).toEqual(values)
      await other.tell('dispose')
      await released
      return held()
    }
    const first = await once()
    expect(await once()).toBe(first)
    expect(first).toBeLessThan(64)
  })

  test('survives a receiver that exits before or after it has the memory', async () => {
    using buffer = grown(Array.from({ length: 70 }, () => 1))
    const other = await start('process')
    const shared = share(other.channel, buffer, limit)
    shared.catch(() => undefined)
    await other.end()
    await expect(shared).rejects.toThrow(SystemError)
    await expect(shared).rejects.toMatchObject({ code: 'ECONNRESET' })
    const another = await start('process')
    const opened = another.tell('open', limit)
    const { released } = await share(another.channel, buffer, limit)
    await opened
    await another.end()
    await released
    buffer.buffer.fillSync(1)
  })

  test('delivers several buffers over one socket in order', async () => {
    const [ours, theirs] = DescriptorSocket.pair()
    using first = grown(Array.from({ length: 70 }, () => 1))
    using second = grown(Array.from({ length: 130 }, () => 1))
    using small = DeviceBuffer.from(device, Uint8Array.of(1, 2, 3))
    first.buffer.slice(0, 1).fillSync(11)
    second.buffer.slice(-1).fillSync(22)
    const sending = Promise.all([first, second].map((buffer) => sendMemory(ours, buffer, limit)))
    const memories = await Promise.all([receiveMemory<'u8'>(theirs, limit), receiveMemory<'u8'>(theirs, limit)])
    await sending
    expect(memories.map(({ length }) => length / unit)).toEqual([70, 130])
    expect(memories[0].buffer.slice(0, 1).toArraySync()[0]).toBe(11)
    expect(memories[1].buffer.slice(-1).toArraySync()[0]).toBe(22)
    for (const one of [...memories, ours, theirs]) one.dispose()
    expect(small.length).toBe(3)
  })

  test('between ports of one thread transfers the address', async () => {
    const { port1, port2 } = new MessageChannel()
    using buffer = grown([1, 1, 1])
    buffer.buffer.fillSync(6)
    const [{ released }, memory] = await Promise.all([share(port1, buffer, limit), receive<'u8'>(port2, limit)])
    expect(memory.buffer.slice(unit - 1, unit + 1).toArraySync()).toEqual(Uint8Array.of(6, 6))
    memory.dispose()
    await released
    port1.close()
  })
})

describe('failures of sharing in pieces', () => {
  test('pieces that cannot leave the process are refused before any message is sent', async () => {
    const other = await start('process')
    const plain = GrowableBuffer.reserve(device, 'u8', { maximumLength: 8 * unit, stepBytes: 1 })
    plain.resize(unit).resize(2 * unit)
    using range = AddressRange.reserve(6 * unit)
    const made = [
      PhysicalMemory.create(device, unit, { handleTypes }),
      PhysicalMemory.create(device, unit),
      PhysicalMemory.create(device, unit, { handleTypes }),
      PhysicalMemory.create(second, unit, { handleTypes }),
    ]
    const mapped = [0, 1, 3, 4].map((place, index) => {
      return range.map(made[index] as Physical, { offset: place * unit })
    })
    const at = (place: number, units: number): MemoryLike => bytesAt(range.address + BigInt(place * unit), units * unit)
    for (const [memory, words] of [
      [plain, "share failed in the NVIDIA CUDA driver: it was not made with handleTypes: 'posix-fd'"],
      [at(0, 2), "it was not made with handleTypes: 'posix-fd'"],
      [at(3, 2), 'a part of it lies on device 1'],
      [at(4, 2), 'a part of it lies on device 1'],
    ] as const) {
      await expect(share(other.channel, memory, limit)).rejects.toThrow(FeatureNotSupportedError)
      await expect(share(other.channel, memory, limit)).rejects.toThrow(words.split(': ').at(-1))
    }
    mapped[1]?.disposeSync()
    await expect(share(other.channel, at(0, 2), limit)).rejects.toThrow('a part of it is not mapped')
    for (const one of [plain, ...mapped, ...made]) one.dispose()
  })

  test('inconsistent messages close their descriptors and those that follow', async () => {
    const [ours, theirs] = DescriptorSocket.pair()
    const good = {
      type: 'shared-memory',
      version: 1,
      way: 'posix-fd',
      deviceUuid: device.uuid,
      byteLength: 2 * unit,
      byteOffset: 0,
      allocationBytes: 2 * unit,
      pieces: [unit, unit],
    }
    using physical = PhysicalMemory.create(device, unit, { handleTypes })
    const send = async (message: object, count: number) => {
      const handles = Array.from({ length: count }, () => physical.export())
      await ours.send({
        bytes: Buffer.from(JSON.stringify(message)),
        descriptors: handles.map(({ descriptor }) => descriptor),
      })
      for (const handle of handles) handle.dispose()
    }
    const many = { byteLength: 66 * unit, allocationBytes: 66 * unit, pieces: Array.from({ length: 66 }, () => unit) }
    const behind = { type: 'shared-memory-pieces' }
    for (const [message, count, next, words] of [
      [{ ...good, pieces: unit }, 2, 0, 'message.pieces must be a list of sizes in bytes'],
      [{ ...good, pieces: [unit, -1] }, 2, 0, 'message.pieces[1] must be'],
      [{ ...good, pieces: [unit, 2 * unit] }, 2, 0, `message.pieces must be sizes that are ${2 * unit} bytes together`],
      [{ ...good, pieces: [unit - 1, unit + 1] }, 2, 0, 'handle.byteLength must be a multiple'],
      [good, 1, 0, 'message must be with 2 descriptors, not 1'],
      [good, 3, 0, 'message must be with 2 descriptors, not 3'],
      [{ ...good, ...many }, 63, 2, 'message must be with 64 descriptors, not 63'],
      [{ ...good, ...many }, 64, 1, 'message must be with 2 descriptors, not 1'],
      [{ ...good, ...many, deviceUuid: 'GPU-0' }, 64, 2, 'which this process does not see'],
      [{ ...behind }, 2, 0, 'message must be a description of shared memory'],
    ] as const) {
      const open = descriptors()
      await send(message, count)
      if (next > 0) await send(behind, next)
      await expect(receiveMemory(theirs, limit)).rejects.toThrow(words)
      expect(descriptors()).toBe(open)
      // The next memory follows all of these messages.
      using buffer = DeviceBuffer.from(device, Uint8Array.of(1))
      await sendMemory(ours, buffer.slice(0), limit)
      await expect(receiveMemory(theirs, limit)).rejects.toThrow('cuIpcOpenMemHandle')
    }
    await send({ ...good, ...many }, 64)
    await expect(receiveMemory(theirs, { timeout: 50 })).rejects.toMatchObject({ name: 'TimeoutError' })
    await send({ ...good, ...many }, 64)
    const cut = receiveMemory(theirs, limit)
    ours.dispose()
    await expect(cut).rejects.toMatchObject({ code: 'ECONNRESET' })
    theirs.dispose()
  })
})
