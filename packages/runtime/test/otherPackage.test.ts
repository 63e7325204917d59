import { afterAll, expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const driver = await import('@shoal/driver')
const runtime = await import('@shoal/runtime')
const { Event, elapsedMs, Stream } = runtime

const device = driver.Device.get(0)
const context = device.primaryContext

afterAll(() => device.dispose())

test("driver and runtime record each other's events, and read the time between them", async () => {
  using ours = Stream.create()
  using theirs = device.createStream()
  using first = Event.create({ timing: true })
  using second = device.createEvent({ timing: true })
  expect(theirs.record(first)).toBe(first)
  expect(ours.record(second)).toBe(second)
  await Promise.all([first.synchronize(), second.synchronize()])
  expect(elapsedMs(first, second)).toBeTypeOf('number')
  expect(driver.elapsedMs(first, second)).toBeTypeOf('number')
  first.dispose()
  expect(() => theirs.record(first)).toThrow('Event was disposed')
  expect(() => theirs.record({} as never)).toThrow('event must be an Event, not a plain object')
})

const values = Float32Array.from({ length: 101 }, () => Math.random())

test('buffers of driver and runtime are accepted and copied by each other', async () => {
  using theirs = driver.DeviceBuffer.from(device, values)
  using ours = runtime.DeviceBuffer.from(values)
  using a = driver.DeviceBuffer.zeros(device, 'f32', 101)
  using b = runtime.DeviceBuffer.zeros('f32', 101)
  expect(a.copyFromSync(ours).toArraySync()).toEqual(values)
  expect(b.copyFromSync(theirs).toArraySync()).toEqual(values)
  for (const buffer of [theirs, ours]) {
    expect(buffer).toBeInstanceOf(driver.DeviceBuffer)
    expect(buffer).toBeInstanceOf(runtime.DeviceBuffer)
    expect(runtime.DeviceBuffer.view(buffer, 'f32', { byteOffset: 4 }).toArraySync()).toEqual(values.slice(1))
    expect(driver.DeviceBuffer.view(device, buffer, 'f32', { byteOffset: 4 }).toArraySync()).toEqual(values.slice(1))
  }
  theirs.dispose()
  expect(() => b.copyFrom(theirs)).toThrow('DeviceBuffer was disposed')
  expect(() => runtime.DeviceBuffer.view(theirs, 'f32')).toThrow('DeviceBuffer was disposed')
})

test("streams of driver and runtime order each other's copies, fills and frees", async () => {
  using ours = Stream.create()
  using theirs = device.createStream()
  for (const [made, other] of [
    [driver.DeviceBuffer.allocateOn(theirs, 'f32', 101), ours],
    [runtime.DeviceBuffer.allocateOn(ours, 'f32', 101), theirs],
    [driver.DeviceBuffer.allocate(device, 'f32', 101), ours],
    [runtime.DeviceBuffer.allocate('f32', 101), theirs],
  ] as const) {
    ours.synchronizeSync()
    theirs.synchronizeSync()
    expect(await made.copyFrom(values, { stream: other }).toArray({ stream: other })).toEqual(values)
    made.disposeOn(other)
    expect(made.disposed).toBe(true)
  }
})

test('page-locked and managed memory of driver and runtime is copied by each other', async () => {
  for (const pinned of [driver.PinnedBuffer.from(device, values), runtime.PinnedBuffer.from(values)]) {
    using held = pinned
    for (const buffer of [driver.DeviceBuffer.zeros(device, 'f32', 101), runtime.DeviceBuffer.zeros('f32', 101)]) {
      using target = buffer
      expect(await target.copyFrom(held).toArray()).toEqual(values)
      held.array.fill(0)
      expect((await target.copyTo(held)).array).toEqual(values)
    }
  }
  using theirs = driver.ManagedBuffer.allocate(device, 'f32', 101)
  using ours = runtime.ManagedBuffer.allocate('f32', 101)
  theirs.array.set(values)
  ours.memory.copyFromSync(theirs)
  expect(ours.array).toEqual(values)
  expect([runtime.pointerInfo(theirs).type, driver.pointerInfo(device, ours).type]).toEqual(['managed', 'managed'])
})

test("pools of driver and runtime serve each other's streams under the same handle", () => {
  using ours = Stream.create()
  using theirs = device.createStream()
  using pool = driver.MemoryPool.create(device)
  const same = runtime.MemoryPool.from(pool)
  const back = driver.MemoryPool.from(device, runtime.MemoryPool.from(same))
  expect([same.handle, back.handle]).toEqual([pool.handle, pool.handle])
  for (const [from, stream] of [
    [pool, ours],
    [same, theirs],
    [same, ours],
  ] as const) {
    const buffer = from.allocate(stream, 'f32', 101)
    expect(pool.used.current).toBeGreaterThanOrEqual(404)
    expect(buffer.copyFromSync(values, { stream }).toArraySync({ stream })).toEqual(values)
    buffer.disposeOn(stream)
    stream.synchronizeSync()
    expect(pool.used.current).toBe(0)
  }
  // Disposing of a borrowed pool does not destroy the pool.
  same.dispose()
  expect(pool.used.current).toBe(0)
})

test.each([
  ['runtime', () => device.createStream(), (stream: object) => Stream.from(stream as never)],
  ['driver', () => Stream.create(), (stream: object) => driver.Stream.from(context, stream as never)],
])('a stream converted for the %s is disposed silently after its original', async (_, make, convert) => {
  const made = make()
  const converted = convert(made)
  made.dispose()
  await converted[Symbol.asyncDispose]()
  expect(converted.disposed).toBe(true)
})

test('a converted stream is disposed silently after a reset of its device', async () => {
  const stream = device.createStream()
  await device.reset()
  await stream[Symbol.asyncDispose]()
  expect(stream.disposed).toBe(true)
})

const readFirst = `.version 8.0
.target sm_90
.address_size 64
.visible .entry readFirst(.param .u64 texture, .param .u64 out) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [texture];
  ld.param.u64 %rd2, [out];
  mov.b32 %r1, 0;
  tex.1d.v4.u32.s32 {%r2, _, _, _}, [%rd1, {%r1}];
  st.global.u32 [%rd2], %r2;
  ret;
}
`

test("kernels of driver and runtime accept each other's textures, and arrays can be copied between them", async () => {
  const { CudaArray, TextureObject } = await import('@shoal/driver/texture')
  const runtimeTexture = await import('@shoal/runtime/texture')
  using theirs = CudaArray.create(device, { width: 4, format: 'u32' })
  using ours = runtimeTexture.CudaArray.create({ width: 4, format: 'u32' })
  theirs.copyFromSync(Uint32Array.of(7, 8, 9, 10))
  ours.copyFromSync(theirs)
  using module = driver.Module.loadSync(device, readFirst)
  const kernel = module.kernel('readFirst', ['texture', 'ptr'])
  using out = runtime.DeviceBuffer.zeros('u32', 1)
  using texture = runtimeTexture.TextureObject.create(ours)
  kernel.launch({ grid: 1, block: 1 }, texture, out)
  expect(await out.toArray()).toEqual(Uint32Array.of(7))
  theirs.copyFromSync(Uint32Array.of(3, 0, 0, 0)).copyFromSync(ours)
  using other = TextureObject.create(theirs)
  kernel.launch({ grid: 1, block: 1 }, other, out.fill(0))
  expect(await out.toArray()).toEqual(Uint32Array.of(7))
})
