import { afterAll, expect, test } from 'vitest'

// Sizes whose high word is not 0. The software device commits memory at its first use, so these sizes cost nothing.
const gibibyte = 2 ** 30
Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_MEMORY_BYTES: String(64 * gibibyte) })
const { CachingPool, DeviceBuffer, MemoryPool, Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const stream = Stream.create(device)
const pool = MemoryPool.create(device)
const cachingPool = CachingPool.create(device)
afterAll(() => {
  for (const each of [cachingPool, pool, stream]) each.dispose()
})

const byteLength = 5 * gibibyte + 4096

test.each([
  ['DeviceBuffer.allocate', () => DeviceBuffer.allocate(device, 'u8', byteLength)],
  ['DeviceBuffer.allocateOn', () => DeviceBuffer.allocateOn(stream, 'u8', byteLength)],
  ['MemoryPool.allocate', () => pool.allocate(stream, 'u8', byteLength)],
  ['CachingPool.allocate', () => cachingPool.allocate(stream, 'u8', byteLength)],
] as const)('%s reserves all bytes of a size above 4 GiB', async (_name, allocate) => {
  const buffer = allocate()
  await stream.synchronize()
  expect(buffer.byteLength).toBe(byteLength)
  // The last bytes belong to the buffer: the device refuses copies beyond the end of an allocation.
  const last = buffer.slice(byteLength - 4096, byteLength)
  expect(last.address - buffer.address).toBe(BigInt(5 * gibibyte))
  last.fillSync(7, { stream })
  expect(last.toArraySync({ stream })).toEqual(new Uint8Array(4096).fill(7))
  buffer.dispose()
  await stream.synchronize()
})
