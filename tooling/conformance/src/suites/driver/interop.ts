import assert from 'node:assert/strict'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import {
  AddressRange,
  allocationGranularity,
  DescriptorSocket,
  DeviceBuffer,
  DisposedError,
  GrowableBuffer,
  type MemoryLike,
  type MemoryRange,
  Module,
  PhysicalMemory,
  type Stream,
} from '@shoal/driver'
import { fromDLPack, toDLPack } from '@shoal/driver/dlpack'
import { receive, receiveMemory, sendMemory, share } from '@shoal/driver/sharing'
import { memoryProtocol } from '@shoal/types'
import type { CaseContext, Suite } from '../../suite.js'
import { queueDelay } from '../../support/delay.js'

/** Offers memory like another package does, with extra fields in its answer. */
function offered(buffer: DeviceBuffer, extra: Partial<MemoryRange>): MemoryLike {
  return {
    get [memoryProtocol](): MemoryRange {
      return { ...buffer[memoryProtocol], version: 1, ...extra }
    },
  }
}

/** Returns memory that a stream fills with ones after a delay. */
async function late(t: CaseContext, length: number): Promise<{ readonly stream: Stream; readonly memory: MemoryLike }> {
  const stream = t.own(t.device.createStream({ nonBlocking: true }))
  const buffer = t.own(DeviceBuffer.zeros(t.device, 'f32', length))
  await queueDelay(stream, 50)
  buffer.fill(1, { stream })
  return { stream, memory: offered(buffer, { stream: stream.handle as bigint }) }
}

export const interopSuite: Suite = {
  name: 'driver interop',
  cases: [
    {
      name: 'work comes behind the stream that memory names: copies, views and kernels',
      requires: { delay: true, kernels: true },
      async run(t) {
        const length = t.random.integer(1000, 100_000)
        const ones = new Float32Array(length).fill(1)
        const own = t.own(t.device.createStream({ nonBlocking: true }))
        const copy = t.own(DeviceBuffer.zeros(t.device, 'f32', length))
        copy.copyFrom((await late(t, length)).memory, { stream: own })
        assert.deepEqual(await copy.toArray({ stream: own }), ones)
        const { stream, memory } = await late(t, length)
        const view = DeviceBuffer.view(t.device, memory, 'f32')
        assert.equal(view[memoryProtocol].stream, stream.handle)
        assert.deepEqual(await view.slice(1).toArray({ stream: own }), ones.subarray(1))
        const module = t.own(await Module.loadFile(t.device, join(t.kernels, 'axpy.ptx')))
        const axpy = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
        const shape = { grid: Math.ceil(length / 256), block: 256, stream: own }
        const fromMemory = t.own(DeviceBuffer.zeros(t.device, 'f32', length))
        axpy.launch(shape, 2, (await late(t, length)).memory as never, fromMemory, length)
        axpy.launch(shape, 3, DeviceBuffer.view(t.device, (await late(t, length)).memory, 'f32'), fromMemory, length)
        axpy.prepare(shape, 4, (await late(t, length)).memory as never, fromMemory, length).launch()
        assert.deepEqual(await fromMemory.toArray({ stream: own }), new Float32Array(length).fill(9))
      },
    },
    {
      name: 'elements with gaps are refused by name wherever memory is taken',
      run(t) {
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'f32', 64))
        const target = t.own(DeviceBuffer.zeros(t.device, 'f32', 64))
        const gaps = offered(buffer, { shape: [4, 8], strides: [16, 1], length: 32 })
        const words = /must be contiguous, not with strides \[16,1\] for a shape of \[4,8\]/
        assert.throws(() => target.copyFrom(gaps), words)
        assert.throws(() => DeviceBuffer.view(t.device, gaps, 'f32'), words)
        target.copyFrom(offered(buffer, { shape: [8, 8], strides: [8, 1] }))
        t.device.synchronizeSync()
      },
    },
    {
      name: 'a tensor of DLPack is the same memory, and its deleter is called once',
      async run(t) {
        const length = t.random.integer(1, 1000)
        const data = t.random.bytes(length)
        const buffer = t.own(DeviceBuffer.from(t.device, data))
        for (const versioned of [false, true]) {
          const capsule = t.own(toDLPack(buffer, { versioned }))
          const tensor = fromDLPack(capsule.take(), { versioned })
          const view = DeviceBuffer.view(t.device, tensor, 'u8')
          assert.deepEqual([tensor.dtype, tensor.shape, tensor.deviceOrdinal], ['u8', [length], t.device.ordinal])
          assert.deepEqual(await view.toArray(), data)
          tensor.dispose()
          await capsule.released
          assert.throws(() => view.toArraySync(), DisposedError)
        }
      },
    },
    {
      name: 'memory is shared with a thread by its address, mapped memory over a socket by its descriptor',
      async run(t) {
        const { port1, port2 } = new MessageChannel()
        t.defer(() => port1.close())
        const data = t.random.bytes(1000)
        const buffer = t.own(DeviceBuffer.from(t.device, data))
        const [sharing, memory] = await Promise.all([share(port1, buffer), receive<'u8'>(port2)])
        assert.deepEqual(await memory.buffer.toArray(), data)
        memory.dispose()
        await sharing.released
        const options = { handleTypes: 'posix-fd' } as const
        const physical = t.own(PhysicalMemory.create(t.device, allocationGranularity(t.device, options), options))
        const range = t.own(AddressRange.reserve(physical.byteLength))
        const mapped = t.own(range.map(physical))
        const [ours, theirs] = DescriptorSocket.pair().map((socket) => t.own(socket))
        const view = DeviceBuffer.view(t.device, mapped, 'u8', { byteOffset: 512, length: 1000 }).copyFromSync(data)
        await sendMemory(ours as DescriptorSocket, view)
        const arrived = t.own(await receiveMemory<'u8'>(theirs as DescriptorSocket))
        assert.equal(arrived.way, 'posix-fd')
        assert.deepEqual(await arrived.buffer.toArray(), data)
      },
    },
    {
      name: 'memory that has grown is one range of addresses at the other end of a socket, whatever becomes of it here',
      async run(t) {
        const handleTypes = 'posix-fd'
        const unit = allocationGranularity(t.device, { handleTypes })
        const [ours, theirs] = DescriptorSocket.pair().map((socket) => t.own(socket)) as [
          DescriptorSocket,
          DescriptorSocket,
        ]
        for (const count of [2, t.random.integer(3, 12), 64, t.random.integer(65, 90)]) {
          const options = { maximumLength: 3 * count * unit, stepBytes: 1, handleTypes } as const
          const growing = t.own(GrowableBuffer.reserve(t.device, 'u8', options))
          for (let piece = 0; piece < count; piece += 1) growing.resize(growing.length + t.random.integer(1, 2) * unit)
          const from = t.random.integer(0, unit / 2)
          const part = growing.buffer.slice(from, growing.length - t.random.integer(0, unit - 1))
          part.fillSync(t.random.integer(0, 255))
          // A few bytes at the end of each piece, across two mappings.
          const data = t.random.bytes(6)
          const ends = [1, count - 1, count].map((end) => end * unit - from - 3)
          const places = [0, ...ends].filter((place) => place + 6 < part.length)
          for (const place of places) part.slice(place, place + 6).copyFromSync(data)
          await sendMemory(ours, part)
          const memory = t.own(await receiveMemory<'u8'>(theirs))
          assert.deepEqual([memory.way, memory.length], ['posix-fd', part.length])
          for (const place of places) assert.deepEqual(await memory.buffer.slice(place, place + 6).toArray(), data)
          memory.buffer.slice(-1).fillSync(1)
          assert.deepEqual(await part.slice(-1).toArray(), Uint8Array.of(1))
          growing.dispose()
          memory.buffer.fillSync(2)
          assert.deepEqual(await memory.buffer.slice(-1).toArray(), Uint8Array.of(2))
          memory.dispose()
        }
      },
    },
  ],
}
