import { fork } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { inspect } from 'node:util'
import { MessageChannel, Worker } from 'node:worker_threads'
import type { ProcessChannel } from '@shoal/driver/sharing'
import { DescriptorSocket } from '@shoal/ffi'
import { DisposedError, type MemoryLike, memoryProtocol, SystemError, TimeoutError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { descriptors, peersOfTests } from './support/sharingPeer.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const {
  AddressRange,
  allocationGranularity,
  Device,
  DeviceBuffer,
  ManagedBuffer,
  MemoryPool,
  PhysicalMemory,
  PinnedBuffer,
  Stream,
} = await import('@shoal/driver/shared')
const { receive, receiveMemory, SharedMemory, sendMemory, share } = await import('@shoal/driver/sharing')

const device = Device.get(0)
const limit = { timeout: 60_000 }

const start = peersOfTests()

describe('share and receive', () => {
  test.each(['process', 'thread'] as const)('transfer device memory to another %s', async (kind) => {
    const other = await start(kind)
    using buffer = DeviceBuffer.from(device, Float32Array.of(1, 2, 3, 4, 5))
    const taken = other.tell('take', limit)
    const sharing = await share(other.channel, buffer.slice(1), limit)
    expect(sharing.way).toBe(kind === 'thread' ? 'process' : 'ipc')
    const facts = { way: sharing.way, dtype: 'f32', shape: [4], strides: [1], byteLength: 16, values: [2, 3, 4, 5] }
    expect(await taken).toMatchObject({ result: facts })
    await other.tell('fill', 9)
    expect(buffer.toArraySync()).toEqual(Float32Array.of(1, 9, 9, 9, 9))
    await other.tell('dispose')
    await sharing.released
  })

  test("transfer mapped memory by its descriptor, and the memory outlives the sender's handle", async () => {
    const other = await start('process')
    const options = { handleTypes: 'posix-fd' } as const
    const memory = PhysicalMemory.create(device, allocationGranularity(device, options), options)
    const range = AddressRange.reserve(memory.byteLength)
    const mapped = range.map(memory)
    const view = DeviceBuffer.view(device, mapped, 'i32', { byteOffset: 64, length: 3 })
    view.copyFromSync(Int32Array.of(7, 8, 9))
    const taken = other.tell('take', limit)
    const sharing = await share(other.channel, view, limit)
    expect([sharing.way, (await taken).result]).toMatchObject(['posix-fd', { shape: [3], values: [7, 8, 9] }])
    for (const one of [mapped, range, memory]) one.dispose()
    await other.tell('fill', 5)
    await other.tell('dispose')
    await sharing.released
  })

  test('transfer pool memory through the pool', async () => {
    const other = await start('process')
    using pool = MemoryPool.create(device, { handleTypes: 'posix-fd' })
    using stream = Stream.create(device)
    using buffer = pool.allocate(stream, 'u16', 8).copyFrom(Uint16Array.of(1, 2, 3, 4, 5, 6, 7, 8), { stream })
    await stream.synchronize()
    const taken = other.tell('take', limit)
    const sharing = await share(other.channel, buffer.slice(2, 5), limit)
    expect([sharing.way, (await taken).result]).toMatchObject(['pool', { shape: [3], values: [3, 4, 5], dtype: 'u16' }])
    await other.tell('dispose')
    await sharing.released
  })

  test.each(['process', 'thread'] as const)('transfer shape and strides to a %s', async (kind) => {
    const other = await start(kind)
    using buffer = DeviceBuffer.zeros(device, 'f32', 32)
    for (const layout of [
      { shape: [4, 8], strides: [8, 1] },
      { shape: [8, 4], strides: [1, 8] },
      { shape: [4, 4], strides: [8, 1] },
    ]) {
      const matrix = {
        [memoryProtocol]: { ...buffer[memoryProtocol], version: 1, length: undefined, ...layout },
      } as unknown as MemoryLike
      const taken = other.tell('take', limit)
      const { released } = await share(other.channel, matrix, limit)
      expect((await taken).result).toMatchObject(layout)
      await other.tell('dispose')
      await released
    }
  })

  test('complete pending work before the memory arrives', async () => {
    const other = await start('thread')
    using gate = PinnedBuffer.allocate(device, 'u32', 1)
    using buffer = DeviceBuffer.zeros(device, 'u8', 4)
    using stream = Stream.create(device, { nonBlocking: true })
    gate.array[0] = 0
    stream.waitValue(gate, 1)
    buffer.fill(3, { stream })
    const pending = {
      [memoryProtocol]: { ...buffer[memoryProtocol], version: 1, stream: stream.handle as bigint },
    } as const
    const taken = other.tell('take', limit)
    const shared = share(other.channel, pending, limit)
    setTimeout(() => {
      gate.array[0] = 1
    }, 30)
    await shared
    expect((await taken).result.values).toEqual([3, 3, 3, 3])
  })

  test('leave the order of contents to an event known on both sides', async () => {
    const other = await start('process')
    using event = device.createEvent({ interprocess: true, timing: false })
    using buffer = DeviceBuffer.zeros(device, 'u8', 4)
    using stream = Stream.create(device)
    buffer.fill(4, { stream })
    stream.record(event)
    const taken = other.tell('take', limit)
    await share(other.channel, buffer, { ...limit, event })
    expect((await taken).result.values).toEqual([4, 4, 4, 4])
  })

  test.each(['process', 'thread'] as const)('work in the other direction, from a %s', async (kind) => {
    const other = await start(kind)
    const given = other.tell('give')
    {
      using memory = await receive<'i32'>(other.channel, limit)
      expect([memory.dtype, memory.length, await memory.buffer.toArray()]).toEqual(['i32', 3, Int32Array.of(5, 6, 7)])
      expect(inspect(memory)).toMatch(
        /^SharedMemory \{ way: '(?:ipc|process)', dtype: 'i32', shape: '\[3\]', deviceOrdinal: 0 \}$/,
      )
      expect(memory).toBeInstanceOf(SharedMemory)
    }
    expect((await given).error).toBeUndefined()
  })

  test('deliver several buffers at once in order', async () => {
    const other = await start('process')
    using a = DeviceBuffer.from(device, Int32Array.of(1))
    using b = DeviceBuffer.from(device, Int32Array.of(2))
    const all = Promise.all([share(other.channel, a, limit), share(other.channel, b, limit)])
    const first = await other.tell('take', limit)
    const second = await other.tell('take', limit)
    await all
    expect([first.result.values, second.result.values]).toEqual([[1], [2]])
  })
})

test.each(['process', 'thread'] as const)(
  'a %s that waits to free shared memory stays alive until then',
  async (kind) => {
    const program = new URL('fixtures/sharingAndWaiting.mjs', import.meta.url)
    const env = { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' }
    const channel = kind === 'thread' ? new Worker(program) : fork(program, { env, execArgv: [] })
    const said: unknown[] = []
    channel.on('message', (message) => said.push(message))
    const ended = once(channel, 'exit')
    const memory = await receive<'i32'>(channel, limit)
    // This is long enough for the process to end if nothing keeps it alive.
    await new Promise((resolve) => setTimeout(resolve, 100))
    memory.dispose()
    expect((await ended)[0]).toBe(0)
    expect(said).toContain('released')
  },
)

test.each(['process', 'thread'] as const)('a %s that has received the memory may exit at once', async (kind) => {
  using buffer = DeviceBuffer.from(device, Int32Array.of(1))
  const program = new URL('fixtures/takingAndEnding.mjs', import.meta.url)
  const env = { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' }
  const channel = kind === 'thread' ? new Worker(program) : fork(program, { env, execArgv: [] })
  const ended = once(channel, 'exit')
  // A busy thread receives the end and the messages before it at the same time.
  const busy = setInterval(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150), 1)
  try {
    const { released } = await share(channel, buffer, limit)
    await released
  } finally {
    clearInterval(busy)
  }
  await ended
})

describe('failures of share and receive', () => {
  test.each(['process', 'thread'] as const)('a %s is killed before or after it receives the memory', async (kind) => {
    using buffer = DeviceBuffer.from(device, Int32Array.of(1))
    const other = await start(kind)
    const shared = share(other.channel, buffer, limit)
    shared.catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 20))
    await other.end()
    await expect(shared).rejects.toThrow(SystemError)
    await expect(shared).rejects.toMatchObject({ code: 'ECONNRESET', api: 'share' })
    const another = await start(kind)
    const taken = another.tell('take', limit)
    const { released } = await share(another.channel, buffer, limit)
    await taken
    await another.end()
    await released
  })

  test.each(['process', 'thread'] as const)('a %s never receives the memory: timeout and signal', async (kind) => {
    using buffer = DeviceBuffer.from(device, Int32Array.of(1))
    const other = await start(kind)
    await expect(share(other.channel, buffer, { timeout: 20 })).rejects.toThrow(TimeoutError)
    const gone = AbortSignal.abort('enough')
    await expect(share(other.channel, buffer, { signal: gone })).rejects.toMatchObject({ name: 'AbortedError' })
    const controller = new AbortController()
    setTimeout(() => controller.abort('enough'), 20)
    await expect(share(other.channel, buffer, { signal: controller.signal })).rejects.toMatchObject({
      name: 'AbortedError',
    })
  })

  test.each(['process', 'thread'] as const)('a %s sends nothing: timeout', async (kind) => {
    const other = await start(kind)
    await expect(receive(other.channel, { timeout: 20 })).rejects.toThrow(TimeoutError)
    expect((await other.tell('take', { timeout: 20 })).error).toMatchObject({ name: 'TimeoutError' })
    const waiting = receive(other.channel, limit)
    waiting.catch(() => undefined)
    await other.end()
    await expect(waiting).rejects.toMatchObject({ name: 'SystemError', code: 'ECONNRESET', api: 'receive' })
  })

  test.each(['process', 'thread'] as const)('memory is disposed before a %s receives it', async (kind) => {
    const other = await start(kind)
    const buffer = DeviceBuffer.from(device, Int32Array.of(1))
    const shared = share(other.channel, buffer, limit)
    shared.catch(() => undefined)
    buffer.dispose()
    const { error } = await other.tell('take', limit)
    await expect(shared).rejects.toThrow(DisposedError)
    expect(error).toMatchObject({ name: 'DisposedError', message: expect.stringContaining('receive') })
  })

  test('wrong offers are refused, and other messages are ignored', async () => {
    for (const [offer, words] of [
      [{ shoal: 'share', version: 2 }, 'receive: message.version must be 1'],
      [{ shoal: 'share', version: 1 }, 'receive: message.path must be the name of a socket of share()'],
      [{ shoal: 'share', version: 1, path: '/tmp/elsewhere' }, 'receive: message.path must be'],
    ] as const) {
      const { port1, port2 } = new MessageChannel()
      const waiting = receive(port2, limit)
      for (const other of [7, null, { shoal: 'else' }]) port1.postMessage(other)
      port1.postMessage(offer)
      await expect(waiting).rejects.toThrow(TypeError)
      await expect(waiting).rejects.toThrow(words)
      port1.close()
    }
  })

  test('wrong offers from a process are refused', async () => {
    const { port1: port } = new MessageChannel()
    for (const [offer, words] of [
      [{ path: '/tmp/elsewhere' }, 'receive: message.path must be the name of a socket of share()'],
      [{ port }, 'receive: message.path must be the name of a socket of share()'],
    ] as const) {
      const channel = new EventEmitter() as ProcessChannel & EventEmitter
      // Answers the request for offers.
      channel.send = () => channel.emit('message', { shoal: 'share', version: 1, id: '1', ...offer })
      const waiting = receive(channel, limit)
      await expect(waiting).rejects.toThrow(TypeError)
      await expect(waiting).rejects.toThrow(words)
    }
  })

  test('the sender has already exited', async () => {
    const { port1, port2 } = new MessageChannel()
    const waiting = receive(port2, limit)
    port1.postMessage({ shoal: 'share', version: 1, path: '\0shoal-share-nobody' })
    port1.close()
    await expect(waiting).rejects.toMatchObject({ name: 'SystemError', code: 'ECONNRESET' })
  })

  test('memory that cannot leave its process is refused before any message is sent', async () => {
    const other = await start('process')
    using stream = Stream.create(device)
    using ofStream = DeviceBuffer.allocateOn(stream, 'f32', 4)
    using managed = ManagedBuffer.allocate(device, 'f32', 4)
    using pinned = PinnedBuffer.allocate(device, 'f32', 4)
    using empty = DeviceBuffer.allocate(device, 'f32', 0)
    for (const [memory, words] of [
      [ofStream, "its pool was not made with handleTypes: 'posix-fd'"],
      [managed, 'managed memory cannot leave its process'],
      [pinned, 'memory of the host cannot be shared by CUDA'],
      [empty, 'share: memory must be memory of at least one byte'],
      [undefined, "share: memory must be an object with [Symbol.for('cuda.memory')]"],
    ] as const) {
      await expect(share(other.channel, memory as MemoryLike, limit)).rejects.toThrow(words)
    }
  })

  test.each([undefined, 7, {}, { send: 1, on: 1 }, new EventTarget()])(
    '%o is refused as a channel',
    async (channel) => {
      using buffer = DeviceBuffer.from(device, Int32Array.of(1))
      const expected = 'channel must be a ChildProcess with an IPC channel'
      await expect(share(channel as never, buffer)).rejects.toThrow(`share: ${expected}`)
      await expect(receive(channel as never)).rejects.toThrow(`receive: ${expected}`)
    },
  )
})

describe('sendMemory and receiveMemory', () => {
  test('over a socket, the same process can open mapped memory and pool memory', async () => {
    const [ours, theirs] = DescriptorSocket.pair()
    using pool = MemoryPool.create(device, { handleTypes: 'posix-fd' })
    using stream = Stream.create(device)
    const options = { handleTypes: 'posix-fd' } as const
    using physical = PhysicalMemory.create(device, allocationGranularity(device, options), options)
    using range = AddressRange.reserve(physical.byteLength)
    using mapped = range.map(physical)
    using view = DeviceBuffer.view(device, mapped, 'f32', { length: 4 })
    await sendMemory(ours, view.copyFromSync(Float32Array.of(1, 2, 3, 4)), limit)
    using memory = await receiveMemory<'f32'>(theirs, limit)
    expect([memory.way, memory.buffer.toArraySync()]).toEqual(['posix-fd', Float32Array.of(1, 2, 3, 4)])
    memory.dispose()
    memory.dispose()
    expect(() => memory.buffer).toThrow('SharedMemory')
    await sendMemory(ours, mapped, limit)
    using bytes = await receiveMemory(theirs, limit)
    expect([bytes.dtype, bytes.length]).toEqual(['u8', physical.byteLength])
    for (const socket of [ours, theirs]) socket.dispose()
    expect([pool.disposed, stream.disposed]).toEqual([false, false])
  })

  test('a malformed message closes the descriptors that came with it', async () => {
    const [ours, theirs] = DescriptorSocket.pair()
    const handle = Buffer.alloc(64).toString('base64')
    const good = {
      type: 'shared-memory',
      version: 1,
      way: 'posix-fd',
      deviceUuid: device.uuid,
      byteLength: 4,
      byteOffset: 0,
      allocationBytes: 2 ** 21,
    }
    for (const [message, words] of [
      ['{', 'receiveMemory: message must be a description of shared memory'],
      [{ ...good, type: 'memory' }, 'message must be a description of shared memory'],
      [{ ...good, version: 2 }, 'receiveMemory: message.version must be'],
      [{ ...good, way: 'mail' }, 'message.way must be'],
      [{ ...good, byteLength: 0 }, 'message.byteLength must be'],
      [{ ...good, byteOffset: -1 }, 'message.byteOffset must be'],
      [{ ...good, allocationBytes: 3 }, 'message.allocationBytes must be'],
      [{ ...good, dtype: 'f33' }, 'message.dtype must be the name of a dtype'],
      [{ ...good, dtype: 'f32', shape: [2] }, 'message.shape must stay within 4 bytes'],
      [{ ...good, dtype: 'f32', shape: [1], strides: ['x'] }, 'message.strides[0] must be'],
      [{ ...good, way: 'ipc' }, 'message.handle must be'],
      [{ ...good, way: 'ipc', handle: 'AAAA' }, 'message.handle must be 64 bytes, not 3'],
      [{ ...good, way: 'ipc', handle: `${handle}*` }, 'message.handle must be base64 text'],
      [{ ...good, way: 'ipc', handle }, 'message must be with 0 descriptors, not 1'],
      [{ ...good, way: 'pool', handle: 'AAAA' }, 'message.handle must be 64 bytes, not 3'],
      [{ ...good, way: 'process', address: '4096' }, "message.way must be 'posix-fd', 'ipc' or 'pool', not 'process'"],
      [{ ...good, byteOffset: 2 ** 53 - 1 }, 'message.byteOffset must be'],
      [{ ...good, byteOffset: 2, dtype: 'f32' }, 'message.byteOffset must be a multiple of 4 for f32'],
      [{ ...good, dtype: 'f32', shape: null }, 'message.shape must be'],
      [{ ...good, shape: [4] }, 'message.dtype must be the name of a dtype where there is a shape'],
      [{ ...good, strides: [1] }, 'message.dtype must be the name of a dtype where there is a shape'],
      [{ ...good, readOnly: 'yes' }, 'message.readOnly must be a boolean'],
      [{ ...good, event: {} }, 'message.event must be the handle of an event'],
      [{ ...good, event: { type: 'ipc-event', handle: 'AAAA' } }, 'message.event.handle must be 64 bytes'],
      [{ ...good, deviceUuid: 'G'.repeat(2000) }, 'message.deviceUuid must be at most 64 characters'],
      [{ ...good, deviceUuid: 'GPU-0' }, 'which this process does not see'],
      [good, 'handle must have a descriptor of shared memory'],
    ] as const) {
      const open = descriptors()
      const bytes = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message))
      await ours.send({ bytes, descriptors: [0] })
      await expect(receiveMemory(theirs, limit)).rejects.toThrow(words)
      expect(descriptors()).toBe(open)
    }
    for (const socket of [ours, theirs]) socket.dispose()
    using buffer = DeviceBuffer.from(device, Int32Array.of(1))
    await expect(sendMemory(ours, buffer)).rejects.toThrow(DisposedError)
    await expect(receiveMemory(theirs)).rejects.toThrow(DisposedError)
    await expect(sendMemory({} as never, buffer)).rejects.toThrow('sendMemory: socket must be')
    await expect(receiveMemory({} as never)).rejects.toThrow('receiveMemory: socket must be')
  })
})
