import { defineStruct } from '@shoal/types'
import { beforeEach, expect, expectTypeOf, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { currentDevice, Device, ManagedBuffer, setDevice, Stream } = await import('@shoal/runtime')
const { discardBatch, PitchedBuffer, prefetchBatch, prepareCopies3D } = await import('@shoal/runtime/memory')

beforeEach(() => void setDevice(0))

test('PitchedBuffer defaults to the current device', async () => {
  using here = PitchedBuffer.allocate('f32', { width: 10, height: 3 })
  setDevice(1)
  using there = PitchedBuffer.zeros('f32', { width: 10, height: 3, depth: 2 })
  using named = PitchedBuffer.from(
    Float32Array.from({ length: 30 }, (_, index) => index),
    {
      width: 10,
      height: 3,
      device: 0,
    },
  )
  expect([here, there, named].map(({ device }) => device.ordinal)).toEqual([0, 1, 0])
  expect([here.device, there.device]).toEqual([Device.get(0), currentDevice()])
  expectTypeOf(named.dtype).toEqualTypeOf<'f32'>()
  expect(here.pitch).toBeGreaterThanOrEqual(40)
  expect(named).toBeInstanceOf(PitchedBuffer)
  using stream = Stream.create({ device: 0, nonBlocking: true })
  here.copyFrom(named, { stream })
  expect(await here.toArray({ stream })).toEqual(Float32Array.from({ length: 30 }, (_, index) => index))
  expect([...here.fillSync(2).row(2).toArraySync()]).toEqual(new Array(10).fill(2))
  expect(await there.toArray()).toEqual(new Float32Array(60))
})

test('PitchedBuffer accepts structs, and has its own names in errors', async () => {
  const Point = defineStruct('Point', { x: 'f32', y: 'f32', z: 'f32' })
  const points = Array.from({ length: 6 }, (_, index) => ({ x: index, y: -index, z: 0.5 }))
  using cloud = PitchedBuffer.from(points, { width: 3, height: 2, dtype: Point })
  expect(await cloud.toArray()).toEqual(points)
  expect(() => PitchedBuffer.allocate('f32', { width: 0, height: 1 })).toThrow(/^PitchedBuffer.allocate: width must be/)
  expect(() => PitchedBuffer.zeros('f32', { width: 1, height: 1 }, { device: 7 })).toThrow(/device must be/)
  expect(() => PitchedBuffer.from(new Float32Array(2), 3 as never)).toThrow(/options must be a plain object/)
  expect(() => PitchedBuffer.allocate('u8', { width: 2 ** 20, height: 2 ** 20 })).toThrow(
    /cudaMalloc3D failed: cudaErrorMemoryAllocation/,
  )
})

test('prefetchBatch and discardBatch call the runtime', () => {
  using stream = Stream.create({ nonBlocking: true })
  using one = ManagedBuffer.allocate('u8', 64)
  using two = ManagedBuffer.allocate('u8', 64)
  prefetchBatch(
    [
      { memory: one, place: 1 },
      { memory: two, place: 'host' },
    ],
    { stream },
  )
  expect([one, two].map(({ attributes }) => attributes.lastPrefetchLocation)).toEqual([
    { type: 'device', deviceOrdinal: 1 },
    { type: 'host' },
  ])
  prefetchBatch([{ memory: one, place: 0 }], { stream, discard: true, device: 0 })
  expect(one.attributes.lastPrefetchLocation).toEqual({ type: 'device', deviceOrdinal: 0 })
  discardBatch([one, two], { stream })
  expect(() => prefetchBatch([], { stream })).toThrow(/^prefetchBatch: prefetches must be/)
  expect(() => discardBatch([one], {})).toThrow(/^discardBatch: stream must be a stream/)
  expect(() => prefetchBatch([{ memory: 0x10n as never, place: 0 }], { stream })).toThrow(/prefetches\[0\].memory/)
})

test('prepareCopies3D defaults to streams of the current device', async () => {
  const values = Float32Array.from({ length: 30 }, (_, index) => index)
  for (const [current, options] of [
    [0, {}],
    [1, {}],
    [0, { device: 1 }],
  ] as const) {
    setDevice(current)
    using from = PitchedBuffer.from(values, { width: 10, height: 3, ...options })
    using to = PitchedBuffer.from(new Float32Array(30), { width: 10, height: 3, ...options })
    using stream = Stream.create({ nonBlocking: true, ...options })
    prepareCopies3D([{ target: to, source: from }], options).launch({ stream })
    expect(await to.toArray({ stream })).toEqual(values)
  }
  expect(() => prepareCopies3D([])).toThrow('prepareCopies3D: copies must be at least one copy')
})
