import { afterAll, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim' })
const { CachingPool, Device, DeviceBuffer, GrowableBuffer, ManagedBuffer, MemoryPool, PinnedBuffer, Stream } =
  await import('@shoal/runtime')
const { PitchedBuffer } = await import('@shoal/runtime/memory')
const { CudaArray, TextureObject } = await import('@shoal/runtime/texture')

type Kinds = { readonly [name: string]: () => readonly Disposable[] }
const device = Device.get(0)
const kinds: Kinds = {
  DeviceBuffer: () => [DeviceBuffer.allocate('u8', 100)],
  PitchedBuffer: () => [PitchedBuffer.allocate('u8', { width: 3, height: 5 })],
  ManagedBuffer: () => [ManagedBuffer.allocate('u8', 100)],
  PinnedBuffer: () => [PinnedBuffer.allocate('u8', 100)],
  GrowableBuffer: () => [GrowableBuffer.reserve('u8', { maximumLength: 2 ** 22, length: 10 })],
  MemoryPool: () => [MemoryPool.create()],
  CachingPool: () => [CachingPool.create()],
  Stream: () => [Stream.create()],
  'TextureObject of a CudaArray': () => {
    const array = CudaArray.create({ width: 4, height: 4, format: 'f32' })
    return [TextureObject.create(array), array]
  },
}

afterAll(() => device.dispose())

test.each(Object.entries(kinds))('dispose() of %s returns while another stream is busy', async (_, make) => {
  using busy = Stream.create({ nonBlocking: true })
  using other = Stream.create({ nonBlocking: true })
  using word = DeviceBuffer.zeros('u32', 1)
  const made = make()
  busy.waitValue(word, 1)
  for (const one of made) one[Symbol.dispose]()
  expect(busy.query()).toBe(false)
  other.writeValue(word, 1)
  await busy.synchronize()
})
