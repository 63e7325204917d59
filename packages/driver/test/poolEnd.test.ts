import { CUmemPool_attribute, cuMemPoolGetAttribute } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { expect, test } from 'vitest'
import { Device, MemoryPool } from '../src/index.js'

process.env['SHOAL_DEVICE'] = 'sim'

/** What the driver says of a pool's handle. */
function statusOf(handle: MemoryPool['handle']): number {
  const out = NativeMemory.allocate(8)
  return cuMemPoolGetAttribute(handle, CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, out)
}

test('a pool is destroyed with the last memory from it, not before', async () => {
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

test('a pool that nothing came from is destroyed at once', () => {
  const pool = MemoryPool.create(Device.get(0))
  const { handle } = pool
  pool.dispose()
  expect(statusOf(handle)).not.toBe(0)
})
