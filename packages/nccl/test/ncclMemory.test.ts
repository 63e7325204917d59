import { inspect } from 'node:util'
import { withContext } from '@shoal/cuda-sys'
import { type CUdeviceptr, cuMemGetAddressRange } from '@shoal/cuda-sys/driver'
import { keepWhile } from '@shoal/driver/basics'
import type { BackgroundWork } from '@shoal/ffi'
import { Communicator, group, NcclMemory } from '@shoal/nccl'
import { DisposedError, defineArray, defineStruct, defineTuple, memoryProtocol } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

startSoftwareDevice()
const { Device, DeviceBuffer, driverLibrary } = await import('@shoal/driver/shared')

let communicators: Communicator[]
let streams: TestStream[]

beforeAll(async () => {
  communicators = await Communicator.initAll([0, 1])
  streams = communicators.map(({ deviceOrdinal }) => new TestStream(deviceOrdinal))
})

afterAll(async () => {
  for (const communicator of communicators) await communicator.destroy()
})

test.each([
  [defineStruct('Particle', { mass: 'f32', id: 'u8' }), 'Particle'],
  [defineArray('u32', 2), 'u32[2]'],
  [defineTuple(['f32', 'u8']), '[f32, u8]'],
])('NcclMemory holds structs, arrays and tuples, whose bytes other packages see: %o', async (type, name) => {
  await using memory = await NcclMemory.allocate(0, { dtype: type, length: 3 })
  expect(memory).toMatchObject({ dtype: type, length: 3, byteLength: 24 })
  expect(memory[memoryProtocol]).not.toHaveProperty('dtype')
  expect(inspect(memory)).toContain(`dtype: '${name}'`)
})

test('NcclMemory.dispose() returns while a stream of the device is busy, and the memory is freed afterwards', async () => {
  const { Stream } = await import('@shoal/driver')
  const device = Device.get(0)
  using busy = Stream.create(device, { nonBlocking: true })
  using other = Stream.create(device, { nonBlocking: true })
  using word = DeviceBuffer.zeros(device, 'u32', 1)
  const memory = await NcclMemory.allocate(0, 1024)
  const { address } = memory
  const { context } = memory[memoryProtocol]
  busy.waitValue(word, 1)
  memory.dispose()
  expect(busy.query()).toBe(false)
  other.writeValue(word, 1)
  await busy.synchronize()
  await expect.poll(() => isThereAt(address, context), { timeout: 300_000 }).toBe(false)
})

test('NcclMemory works in operations, with or without a dtype', async () => {
  await using typed = await NcclMemory.allocate(0, { dtype: 'f32', length: 3 })
  await using bare = await (communicators[1] as Communicator).allocate(12)
  expect(typed).toMatchObject({ deviceOrdinal: 0, dtype: 'f32', length: 3, byteLength: 12, disposed: false })
  expect(bare).toMatchObject({ deviceOrdinal: 1, dtype: undefined, length: undefined, byteLength: 12 })
  expect(typed[memoryProtocol]).toBe(typed[memoryProtocol])
  expect(typed[memoryProtocol]).toMatchObject({ version: 0, address: typed.address, dtype: 'f32', length: 3 })
  const source = TestMemory.from(0, Float32Array.of(1, 2, 3))
  const target = TestMemory.zeros(1, 'f32', 3)
  group(() => {
    communicators[0]?.send(source, { peer: 0, stream: streams[0] as TestStream })
    communicators[0]?.recv(typed, { peer: 0, stream: streams[0] as TestStream })
  })
  group(() => {
    communicators[0]?.send(typed, { peer: 1, stream: streams[0] as TestStream })
    communicators[1]?.recv(bare, { peer: 0, dtype: 'f32', stream: streams[1] as TestStream })
  })
  group(() => {
    communicators[1]?.send(bare, { peer: 1, dtype: 'f32', stream: streams[1] as TestStream })
    communicators[1]?.recv(target, { peer: 1, stream: streams[1] as TestStream })
  })
  for (const stream of streams) stream.wait()
  expect(target.floats()).toEqual([1, 2, 3])
  for (const memory of [source, target]) memory.dispose()
})

test('NcclMemory.free() frees the memory, and may be called again', async () => {
  const memory = await NcclMemory.allocate(0, 4096)
  expect(`${Object.prototype.toString.call(memory)}`).toBe('[object NcclMemory]')
  await Promise.all([memory.free(), memory.free()])
  await memory.free()
  expect(memory.disposed).toBe(true)
  expect(errorOf(() => memory.address)).toBeInstanceOf(DisposedError)
  expect(errorOf(() => memory[memoryProtocol])).toBeInstanceOf(DisposedError)
  const stream = streams[0] as TestStream
  const call = () => communicators[0]?.send(memory, { peer: 1, dtype: 'u8', stream })
  expect(errorOf(call)).toBeInstanceOf(DisposedError)
})

test('NcclMemory refuses wrong sizes and devices before any native call', async () => {
  for (const size of [0, -1, Number.POSITIVE_INFINITY, { dtype: 'f32', length: 0 }] as const) {
    await expect(NcclMemory.allocate(0, size)).rejects.toThrow(RangeError)
  }
  for (const size of [undefined, null, '4', 0.5, Number.NaN, { dtype: 'f31', length: 1 }, { dtype: 'f32' }]) {
    await expect(NcclMemory.allocate(0, size as never)).rejects.toThrow(TypeError)
  }
  await expect(NcclMemory.allocate(7, 16)).rejects.toThrow('there is no device 7')
  await expect(NcclMemory.allocate('0' as never, 16)).rejects.toThrow(TypeError)
  expect(() => new NcclMemory(Symbol('other') as never, undefined as never, 0n, undefined as never)).toThrow(TypeError)
})

test('NcclMemory larger than the device memory throws an NCCL error', async () => {
  await expect(NcclMemory.allocate(0, 2 ** 50)).rejects.toMatchObject({ api: 'ncclMemAlloc', library: 'NCCL' })
})

test('NcclMemory outlives the communicator of its device', async () => {
  const [communicator] = await Communicator.initAll([0])
  const memory = await (communicator as Communicator).allocate({ dtype: 'f32', length: 1 })
  await communicator?.destroy()
  expect(memory.address).toBeGreaterThan(0n)
  await memory.free()
})

test('NcclMemory.dispose() frees at once, also by using; a second dispose() does nothing', async () => {
  const memory = await NcclMemory.allocate(0, 4096)
  {
    using scoped = memory
    expect(scoped.disposed).toBe(false)
  }
  expect(memory.disposed).toBe(true)
  memory.dispose()
  await memory.free()
  expect(errorOf(() => memory.address)).toBeInstanceOf(DisposedError)
})

const isThereAt = (address: bigint, context: bigint): boolean => {
  const out = new BigUint64Array(2)
  const ask = (): number => cuMemGetAddressRange(out, out.subarray(1), address as CUdeviceptr)
  return withContext(context, ask) === 0
}

/**
 * Returns memory, a function that checks whether the driver knows it, and a call that uses it until the call is ended.
 */
async function memoryOfCall() {
  const memory = await NcclMemory.allocate(0, 4096)
  const { address } = memory
  const { context } = memory[memoryProtocol]
  const isThere = (): boolean => isThereAt(address, context)
  let end = (): void => undefined
  const call = new Promise<void>((resolve) => {
    end = resolve
  })
  return { memory, isThere, call, end: () => end() }
}

test.each(['dispose', 'free'] as const)(
  'NcclMemory: %s waits for a call on another thread that uses the memory',
  async (way) => {
    const { memory, isThere, call, end } = await memoryOfCall()
    keepWhile([memory], call)
    memory[way]()
    expect([memory.disposed, isThere()]).toEqual([true, true])
    end()
    await memory.free()
    expect(isThere()).toBe(false)
  },
)

test('NcclMemory.free() does not wait for an aborted call, and the memory is freed when that call returns', async () => {
  const { memory, isThere, call, end } = await memoryOfCall()
  const background: BackgroundWork = {}
  keepWhile([memory], call, background)
  const freed = memory.free()
  background.release?.()
  await freed
  expect(isThere()).toBe(true)
  end()
  await vi.waitUntil(() => !isThere(), { timeout: 60_000, interval: 5 })
})

describe.each(['NcclMemory', 'DeviceBuffer'] as const)('disposed memory of class %s', (kind) => {
  const device = Reflect.construct(Device, [0, 0, driverLibrary])
  const allocate = async (communicator: Communicator) =>
    kind === 'NcclMemory' ? communicator.allocate(4096) : DeviceBuffer.zeros(device, 'u8', 4096)
  const free = (memory: Disposable & AsyncDisposable, way: string): unknown =>
    way === 'at once' ? memory[Symbol.dispose]() : memory[Symbol.asyncDispose]()

  test.each(['at once', 'later'])('freed by %s is released after its registration', async (way) => {
    const [communicator] = communicators as [Communicator]
    const memory = await allocate(communicator)
    const { address } = memory
    const { context } = memory[memoryProtocol]
    const registration = communicator.register(memory)
    await free(memory, way)
    expect([memory.disposed, isThereAt(address, context)]).toEqual([true, true])
    registration.dispose()
    await vi.waitUntil(() => !isThereAt(address, context), { timeout: 60_000, interval: 5 })
  })

  test.each(['at once', 'later'])('freed by %s is released after its window', async (way) => {
    if (kind !== 'NcclMemory') return // windows accept only mapped memory
    const [communicator] = (await Communicator.initAll([0])) as [Communicator]
    const memory = await allocate(communicator)
    const { address } = memory
    const { context } = memory[memoryProtocol]
    const window = await communicator.registerWindow(memory)
    await free(memory, way)
    expect(isThereAt(address, context)).toBe(true)
    await window.dispose()
    await vi.waitUntil(() => !isThereAt(address, context), { timeout: 60_000, interval: 5 })
    await communicator.destroy()
  })

  test('is freed when the communicator is aborted', async () => {
    const [communicator] = (await Communicator.initAll([0])) as [Communicator]
    const memory = await allocate(communicator)
    const { address } = memory
    const { context } = memory[memoryProtocol]
    communicator.register(memory)
    memory[Symbol.dispose]()
    await communicator.abort()
    await vi.waitUntil(() => !isThereAt(address, context), { timeout: 60_000, interval: 5 })
  })
})

test('NcclMemory refuses unknown size options, and class instances', async () => {
  await expect(NcclMemory.allocate(0, { dtype: 'f32', length: 4, count: 4 } as never)).rejects.toThrow(
    "NcclMemory.allocate: size must have only the keys dtype, length, not 'count'",
  )
  await expect(NcclMemory.allocate(0, new Map() as never)).rejects.toThrow('not an object of class Map')
})

test('NcclMemory prints one line, also after it was freed', async () => {
  const memory = await NcclMemory.allocate(1, { dtype: 'f32', length: 2 })
  const line = inspect(memory)
  expect(line).toMatch(/^NcclMemory \{ deviceOrdinal: 1, address: 0x[0-9a-f]+, byteLength: 8, dtype: 'f32' \}$/)
  memory.dispose()
  expect(inspect(memory)).toBe(line.replace(' }', ', disposed: true }'))
})
