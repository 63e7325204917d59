import { describe, expect, test } from 'vitest'
import { delay, injectError } from './support/sim.js'

process.env['SHOAL_DEVICE'] = 'sim'
process.env['SHOAL_SIM_DEVICES'] = '4'
const { Device, DeviceBuffer, DisposedError, Event, ManagedBuffer, MemoryPool, PinnedBuffer, StatusError, Stream } =
  await import('@shoal/runtime')
const driver = await import('@shoal/driver')

const illegalAddress = 700

function lost(error: unknown): boolean {
  if (!(error instanceof StatusError) || error.status !== illegalAddress || !error.isSticky) return false
  return error.library === 'CUDA runtime' && error.code === 'cudaErrorIllegalAddress'
}

function thrownBy(attempt: () => unknown): unknown {
  try {
    attempt()
    return undefined
  } catch (error) {
    return error
  }
}

describe('a device that was reset', () => {
  test('refuses every object that lived there, also objects of the driver package, and works with a fresh context', async () => {
    const device = Device.get(0)
    const context = device.primaryContext
    const stream = Stream.create({ device })
    const event = Event.create({ device, timing: true })
    const memory = DeviceBuffer.zeros('u8', 100, { device })
    const pinned = PinnedBuffer.allocate('u8', 100, { device })
    const managed = ManagedBuffer.allocate('u8', 100, { device })
    const theirs = driver.DeviceBuffer.zeros(driver.Device.get(0), 'u8', 100)
    const theirStream = driver.Device.get(0).createStream()
    const arrays = [pinned.array, managed.array]
    await device.reset()

    expect(context.disposed).toBe(true)
    expect(() => stream.query()).toThrow(DisposedError)
    expect(() => event.query()).toThrow(DisposedError)
    expect(() => memory.address).toThrow(DisposedError)
    expect(() => memory.fill(1)).toThrow(DisposedError)
    expect(() => pinned.array).toThrow(DisposedError)
    expect(() => managed.array).toThrow(DisposedError)
    expect(() => managed.memory).toThrow(DisposedError)
    expect(() => theirs.address).toThrow(DisposedError)
    expect(() => theirStream.query()).toThrow(DisposedError)
    expect(arrays.map((array) => array.length)).toEqual([0, 0])
    await expect(stream.synchronize()).rejects.toThrow(DisposedError)
    for (const object of [stream, event, memory, pinned, managed, theirs, theirStream]) object.dispose()

    using fresh = DeviceBuffer.from(Uint8Array.of(1, 2, 3), { device })
    expect(() => fresh.fill(1, { stream })).toThrow(DisposedError)
    expect(await fresh.toArray()).toEqual(Uint8Array.of(1, 2, 3))
    using again = driver.DeviceBuffer.from(driver.Device.get(0), Uint8Array.of(4))
    expect(again.toArraySync()).toEqual(Uint8Array.of(4))
  })

  test('by the driver package is noticed by the runtime package', async () => {
    const memory = DeviceBuffer.zeros('u8', 10, { device: 0 })
    const pinned = PinnedBuffer.allocate('u8', 10, { device: 0 })
    await driver.Device.get(0).reset()
    expect(() => memory.address).toThrow(DisposedError)
    expect(() => pinned.array).toThrow(DisposedError)
    using fresh = DeviceBuffer.from(Uint8Array.of(1), { device: 0 })
    expect(fresh.toArraySync()).toEqual(Uint8Array.of(1))
    memory.dispose()
    pinned.dispose()
  })

  test('by reset() loses only its own objects, whichever device is current', async () => {
    Device.get(0).primaryContext.setCurrent()
    using first = DeviceBuffer.from(Uint8Array.of(5), { device: Device.get(0) })
    using second = DeviceBuffer.from(Uint8Array.of(6), { device: Device.get(1) })
    await Device.get(1).reset()
    expect(await first.toArray()).toEqual(Uint8Array.of(5))
    expect(() => second.address).toThrow(DisposedError)
    using next = DeviceBuffer.from(Uint8Array.of(7), { device: Device.get(1) })
    expect(await next.toArray()).toEqual(Uint8Array.of(7))
  })

  test('finishes awaited work before reset() completes', async () => {
    const stream = Stream.create({ device: 0 })
    delay(stream, 60)
    const order: string[] = []
    const wait = stream.synchronize().then(() => order.push('work'))
    await Device.get(0)
      .reset()
      .then(() => order.push('reset'))
    await wait
    expect(order).toEqual(['work', 'reset'])
  })
})

describe('a device that failed', () => {
  test('every wait and call throws a sticky StatusError without hanging, and dispose() does not throw', async () => {
    const device = Device.get(1)
    const stream = Stream.create({ nonBlocking: true, device })
    const memory = DeviceBuffer.zeros('u8', 1000, { device })
    const onStream = DeviceBuffer.allocateOn(stream, 'u8', 1000)
    const pinned = PinnedBuffer.allocate('u8', 1000, { device })
    const managed = ManagedBuffer.allocate('u8', 1000, { device })
    const pool = MemoryPool.create({ device })
    const mark = stream.record()
    delay(stream, 5_000)
    let called = false
    const waits = [
      stream.synchronize(),
      stream.synchronize({ timeout: 20_000 }),
      stream.record().synchronize(),
      stream.hostFunction(() => {
        called = true
      }),
      memory.toArray({ stream }),
      memory.copyTo(pinned, { stream }),
    ]
    // Left unobserved on purpose: it must not end the process.
    void memory.copyTo(new Uint8Array(1000), { stream })
    injectError(device, illegalAddress)
    for (const wait of waits) await expect(wait).rejects.toSatisfy(lost)
    expect(called).toBe(false)

    expect(thrownBy(() => stream.query())).toSatisfy(lost)
    expect(thrownBy(() => stream.synchronizeSync())).toSatisfy(lost)
    expect(thrownBy(() => mark.query())).toSatisfy(lost)
    expect(thrownBy(() => DeviceBuffer.allocate('u8', 10, { device }))).toSatisfy(lost)
    expect(thrownBy(() => device.synchronizeSync())).toSatisfy(lost)
    await expect(device.synchronize()).rejects.toSatisfy(lost)

    for (const object of [managed, pinned, onStream, memory, pool, mark, stream]) object.dispose()
    device.dispose()
  })

  test('other devices keep working', async () => {
    using memory = DeviceBuffer.from(Uint8Array.of(1, 2), { device: 2 })
    expect(await memory.toArray()).toEqual(Uint8Array.of(1, 2))
  })
})

describe('parents disposed before their children', () => {
  test('leave the children usable, and the context ends with the last child', async () => {
    const device = Device.get(3)
    const context = device.primaryContext
    const stream = Stream.create({ device })
    const memory = DeviceBuffer.allocateOn(stream, 'u8', 100)
    const pool = MemoryPool.create({ device })
    const fromPool = pool.allocate(stream, 'u8', 100)
    device.dispose()
    expect(context.disposed).toBe(false)
    pool.dispose()
    memory.fill(3, { stream })
    fromPool.fill(4, { stream })
    expect((await memory.toArray({ stream }))[99]).toBe(3)
    expect((await fromPool.toArray({ stream }))[99]).toBe(4)
    stream.dispose()
    memory.disposeSync()
    expect(context.disposed).toBe(false)
    fromPool.disposeSync()
    expect(context.disposed).toBe(true)
    expect(device.primaryContext).not.toBe(context)
    device.dispose()
  })

  test('leave an event usable while it is awaited', async () => {
    const device = Device.get(3)
    const stream = Stream.create({ device, nonBlocking: true })
    delay(stream, 50)
    const event = stream.record()
    const wait = event.synchronize()
    event.dispose()
    stream.dispose()
    device.dispose()
    expect(await wait).toBe(event)
  })
})
