import { CUmemPool_attribute, cuMemPoolGetAttribute } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { DisposedError, streamProtocol } from '@shoal/types'
import { expect, test } from 'vitest'
import { Device, DeviceBuffer, MemoryPool, Stream } from '../src/index.js'

process.env['SHOAL_DEVICE'] = 'sim'

/** Returns the driver's status for a pool's handle. */
function statusOf(handle: MemoryPool['handle']): number {
  const out = NativeMemory.allocate(8)
  return cuMemPoolGetAttribute(handle, CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, out)
}

test('a pool is destroyed together with its last memory, and not earlier', async () => {
  const device = Device.get(0)
  using stream = device.createStream()
  const pool = MemoryPool.create(device)
  const [first, second] = [pool.allocate(stream, 'u8', 1000), pool.allocate(stream, 'f32', 1000)]
  const { handle } = pool
  pool.dispose()
  expect(statusOf(handle)).toBe(0)
  first.dispose()
  expect(statusOf(handle)).toBe(0)
  second.fill(1, { stream })
  expect((await second.toArray({ stream }))[999]).toBe(1)
  second.dispose()
  expect(statusOf(handle)).not.toBe(0)
})

test('a pool without allocations is destroyed at once', () => {
  const pool = MemoryPool.create(Device.get(0))
  const { handle } = pool
  pool.dispose()
  expect(statusOf(handle)).not.toBe(0)
})

test('memory allocated through another object of the same pool also keeps the pool', () => {
  const device = Device.get(0)
  using stream = device.createStream()
  const before = device.memoryPool
  const pool = MemoryPool.create(device)
  const { handle } = pool
  pool.setCurrent()
  const borrowed = device.memoryPool
  expect(borrowed.handle).toBe(handle)
  before.setCurrent()
  const buffer = borrowed.allocate(stream, 'u8', 1000)
  borrowed.dispose()
  pool.dispose()
  expect(statusOf(handle)).toBe(0)
  buffer.dispose()
  expect(statusOf(handle)).not.toBe(0)
})

test('a pool whose allocation failed is destroyed at once', () => {
  const device = Device.get(0)
  using stream = device.createStream()
  const pool = MemoryPool.create(device)
  const { handle } = pool
  expect(() => pool.allocate(stream, 'u8', 2 ** 50)).toThrow('CUDA_ERROR_OUT_OF_MEMORY')
  expect(pool.allocate(stream, 'u8', 0).length).toBe(0)
  pool.dispose()
  expect(statusOf(handle)).not.toBe(0)
})

test('a pool disposed after a reset of its device, with memory in use, is destroyed with that memory', async () => {
  const device = Device.get(0)
  const stream = device.createStream()
  const pool = MemoryPool.create(device)
  const buffer = pool.allocate(stream, 'u8', 1000)
  const { handle } = pool
  await device.reset()
  pool.dispose()
  expect(statusOf(handle)).toBe(0)
  buffer.dispose()
  expect(statusOf(handle)).not.toBe(0)
  stream.dispose()
})

test('memory is not freed on a borrowed stream whose owner was disposed', async () => {
  const device = Device.get(0)
  const owner = device.createStream()
  let isThere = true
  const foreign = {
    get [streamProtocol]() {
      if (!isThere) throw new DisposedError('Stream')
      return owner[streamProtocol]
    },
  }
  const stream = Stream.from(device.primaryContext, foreign)
  using pool = MemoryPool.create(device)
  const pieces = [pool.allocate(stream, 'u8', 1000), pool.allocate(stream, 'u8', 1000)] as const
  await owner.synchronize()
  owner.dispose()
  isThere = false
  pieces[0].dispose()
  await pieces[1][Symbol.asyncDispose]()
  expect(pool.used.current).toBe(0)
})

test('disposing the current pool restores the default pool, with or without memory in use', async () => {
  const device = Device.get(0)
  using stream = device.createStream()
  const { handle: ordinary } = device.defaultMemoryPool
  for (const isInUse of [true, false]) {
    const pool = MemoryPool.create(device)
    const { handle } = pool
    pool.setCurrent()
    const own = isInUse ? pool.allocate(stream, 'u8', 1000) : undefined
    const before = DeviceBuffer.allocateOn(stream, 'u8', 1000).fill(1, { stream })
    pool.dispose()
    expect(device.memoryPool.handle).toBe(ordinary)
    const { current } = device.defaultMemoryPool.used
    const after = DeviceBuffer.allocateOn(stream, 'u8', 1000).fill(2, { stream })
    expect(device.defaultMemoryPool.used.current).toBe(current + 1000)
    own?.dispose()
    expect(statusOf(handle)).not.toBe(0)
    expect((await before.toArray({ stream }))[999]).toBe(1)
    expect((await after.toArray({ stream }))[999]).toBe(2)
    for (const buffer of [before, after]) buffer.dispose()
    await stream.synchronize()
  }
})
