import { inspect } from 'node:util'
import { DisposedError, memoryProtocol, StatusError } from '@shoal/types'
import { describe, expect, test, vi } from 'vitest'
import { randomFloats } from './support/elements.js'
import { collectUntil } from './support/tensors.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, pointerInfo, RegisteredBuffer, Stream } = await import('@shoal/driver/shared')
const { delay, TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)

describe('RegisteredBuffer.register', () => {
  test('locks the memory of an array in place, for copies of all arrays over it', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using memory = DeviceBuffer.zeros(device, 'f32', 1001)
    const values = randomFloats(2002)
    const before = values.slice()
    using registered = RegisteredBuffer.register(device, values.buffer)
    expect([registered.buffer, registered.byteLength, registered.device]).toEqual([values.buffer, 8008, device])
    expect(pointerInfo(device, registered.address).type).toBe('host')
    expect(registered[memoryProtocol]).toMatchObject({ deviceOrdinal: -1, byteLength: 8008 })
    const target = new Float32Array(values.buffer, 0, 1001)
    memory.copyFrom(new Float32Array(values.buffer, 4004), { stream })
    await memory.copyTo(target, { stream })
    expect(target).toEqual(before.slice(1001))
    registered.dispose()
    expect(pointerInfo(device, BigInt(0x1000)).type).toBe('unregistered')
    // The array is ordinary memory again, with its contents unchanged.
    memory.copyFrom(target, { stream })
    expect(await memory.toArray({ stream })).toEqual(target)
  })

  test('is read when the copy runs, not at the call', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    const values = new Int32Array(16)
    using memory = DeviceBuffer.allocate(device, 'i32', 16)
    using registered = RegisteredBuffer.register(device, values.buffer)
    delay(stream, 30)
    memory.copyFrom(values, { stream })
    values.fill(7)
    registered.dispose() // unlocked after the copy
    await stream.synchronize()
    expect(await memory.toArray()).toEqual(new Int32Array(16).fill(7))
  })

  test('has an address for kernels if it is mapped', () => {
    using mapped = RegisteredBuffer.register(device, new ArrayBuffer(64), {
      mapped: true,
      readOnly: true,
      portable: false,
    })
    expect(mapped.deviceAddress).toBeGreaterThan(0n)
    expect(mapped[memoryProtocol].readOnly).toBe(true)
    using plain = RegisteredBuffer.register(device, new ArrayBuffer(64))
    expect(() => plain.deviceAddress).toThrow('RegisteredBuffer.deviceAddress: the memory must be mapped')
  })

  test('refuses other values than an ArrayBuffer, empty ones and registered ones', () => {
    for (const buffer of [new Uint8Array(8), 8, null, {}, new SharedArrayBuffer(8)]) {
      expect(() => RegisteredBuffer.register(device, buffer as never)).toThrow(
        /^RegisteredBuffer.register: buffer must be an ArrayBuffer/,
      )
    }
    expect(() => RegisteredBuffer.register(device, new ArrayBuffer(0))).toThrow(RangeError)
    expect(() => RegisteredBuffer.register(device, new ArrayBuffer(8), { mapped: 1 as never })).toThrow(TypeError)
    expect(() => RegisteredBuffer.register(device, new ArrayBuffer(8), { pinned: true } as never)).toThrow('pinned')
    const buffer = new ArrayBuffer(4096)
    using first = RegisteredBuffer.register(device, buffer)
    expect(() => RegisteredBuffer.register(device, buffer)).toThrow(StatusError)
    expect(first.disposed).toBe(false)
  })

  test('stays locked while its array is reachable; the garbage collector unlocks it with a warning', async () => {
    const warnings: string[] = []
    const note = (warning: Error): void => void warnings.push(warning.message)
    process.on('warning', note)
    let array: Float32Array | undefined = new Float32Array(3000)
    // The object itself is dropped at once.
    const address = RegisteredBuffer.register(device, array.buffer as ArrayBuffer).address
    for (let times = 0; times < 3; times += 1) {
      await collectUntil(() => true)
      expect(pointerInfo(device, address).type).toBe('host')
    }
    expect(warnings).toEqual([])
    array = undefined
    await collectUntil(() => warnings.length > 0)
    process.off('warning', note)
    expect(warnings).toEqual([
      'A RegisteredBuffer of 12000 bytes was dropped without dispose(); its memory is page-locked until the work of the device has ended',
    ])
    await vi.waitFor(() => expect(pointerInfo(device, address).type).toBe('unregistered'))
  })

  test('detects a transferred buffer, and throws after dispose()', () => {
    const buffer = new ArrayBuffer(128)
    using registered = RegisteredBuffer.register(device, buffer)
    const moved = structuredClone(buffer, { transfer: [buffer] })
    expect(() => registered.address).toThrow('RegisteredBuffer: buffer must be unchanged since its registration')
    expect(moved.byteLength).toBe(128)
    registered.dispose()
    expect(() => registered.address).toThrow(DisposedError)
    expect(inspect(registered)).toBe('RegisteredBuffer { device: 0, byteLength: 128, disposed: true }')
    using again = RegisteredBuffer.register(device, moved)
    expect(again.byteLength).toBe(128)
  })
})
