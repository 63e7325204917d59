import { describe, expect, test } from 'vitest'
import { delay, injectError } from './support/delay.js'

process.env['SHOAL_DEVICE'] = 'sim'
process.env['SHOAL_SIM_DEVICES'] = '3'
const { Device, DeviceBuffer, DisposedError, PinnedBuffer, StatusError } = await import('@shoal/driver')

const illegalAddress = 700

function lost(error: unknown): boolean {
  return error instanceof StatusError && error.status === illegalAddress && error.isSticky
}

describe('a device that was reset', () => {
  test('refuses every object of the old context, and works with a fresh context', async () => {
    const device = Device.get(0)
    const context = device.primaryContext
    const stream = device.createStream()
    const event = stream.record()
    const buffer = DeviceBuffer.zeros(device, 'u8', 100)
    const pinned = PinnedBuffer.allocate(device, 'u8', 100)
    const { array } = pinned
    await device.reset()

    expect(context.disposed).toBe(true)
    expect(() => context.handle).toThrow(DisposedError)
    expect(() => stream.query()).toThrow(DisposedError)
    expect(() => stream.record()).toThrow(DisposedError)
    expect(() => event.query()).toThrow(DisposedError)
    expect(() => buffer.address).toThrow(DisposedError)
    expect(() => buffer.fill(1)).toThrow(DisposedError)
    expect(() => pinned.array).toThrow(DisposedError)
    expect(array.length).toBe(0)
    await expect(stream.synchronize()).rejects.toThrow(DisposedError)
    await expect(event.synchronize()).rejects.toThrow(DisposedError)
    for (const object of [stream, event, buffer, pinned]) object.dispose()

    using fresh = DeviceBuffer.from(device, Uint8Array.of(1, 2, 3))
    expect(() => fresh.fill(1, { stream })).toThrow(DisposedError)
    expect(await fresh.toArray()).toEqual(Uint8Array.of(1, 2, 3))
  })

  test('finishes awaited work before reset() completes', async () => {
    const device = Device.get(0)
    const stream = device.createStream()
    delay(stream, 60)
    const order: string[] = []
    const wait = stream.synchronize().then(() => order.push('work'))
    await device.reset().then(() => order.push('reset'))
    await wait
    expect(order).toEqual(['work', 'reset'])
  })
})

describe('a context that failed', () => {
  test('every wait and call throws a sticky StatusError without hanging, and dispose() does not throw', async () => {
    const device = Device.get(1)
    const stream = device.createStream({ nonBlocking: true })
    const buffer = DeviceBuffer.zeros(device, 'u8', 1000)
    const onStream = DeviceBuffer.allocateOn(stream, 'u8', 1000)
    const pinned = PinnedBuffer.allocate(device, 'u8', 1000)
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
      buffer.toArray({ stream }),
      buffer.copyTo(pinned, { stream }),
    ]
    // Left unobserved on purpose: it must not end the process.
    void buffer.copyTo(new Uint8Array(1000), { stream })
    injectError(device.primaryContext, illegalAddress)
    for (const wait of waits) await expect(wait).rejects.toSatisfy(lost)
    expect(called).toBe(false)

    expect(() => stream.query()).toThrow(StatusError)
    expect(() => stream.synchronizeSync()).toThrow(StatusError)
    expect(() => mark.query()).toThrow(StatusError)
    expect(() => DeviceBuffer.allocate(device, 'u8', 10)).toSatisfy((attempt: () => void) => {
      try {
        attempt()
        return false
      } catch (error) {
        return lost(error)
      }
    })
    await expect(stream.synchronize()).rejects.toSatisfy(lost)
    await expect(stream.hostFunction(() => undefined)).rejects.toSatisfy(lost)
    await expect(device.synchronize()).rejects.toSatisfy(lost)

    for (const object of [pinned, onStream, buffer, mark, stream]) object.dispose()
    device.dispose()
  })

  test('other devices keep working', async () => {
    using buffer = DeviceBuffer.from(Device.get(2), Uint8Array.of(1, 2))
    expect(await buffer.toArray()).toEqual(Uint8Array.of(1, 2))
  })
})
