import { type MemoryLike, type MemoryRange, memoryProtocol } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, PinnedBuffer, prepareCopies, Stream } = await import('@shoal/driver/shared')
const { PitchedBuffer } = await import('@shoal/driver/memory')
const { CudaArray } = await import('@shoal/driver/texture')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)

beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

/** Memory of another package that its producer fills with 7 when the gate opens. */
class Produced implements MemoryLike, Disposable {
  readonly stream: import('@shoal/driver/shared').Stream
  readonly buffer
  readonly #gate
  isPending = true

  constructor(owner = device, byteLength = 64) {
    this.stream = Stream.create(owner, { nonBlocking: true })
    this.buffer = DeviceBuffer.zeros(owner, 'u8', byteLength)
    this.#gate = PinnedBuffer.allocate(owner, 'u32', 1)
    this.#gate.array[0] = 0
    this.stream.waitValue(this.#gate, 1)
    this.buffer.fill(7, { stream: this.stream })
  }

  get [memoryProtocol](): MemoryRange {
    const stream = this.isPending ? this.stream.handle : null
    return { ...this.buffer[memoryProtocol], version: 1, stream }
  }

  open(): void {
    this.#gate.array[0] = 1
  }

  [Symbol.dispose](): void {
    this.open()
    this.stream.synchronizeSync()
    for (const one of [this.buffer, this.#gate, this.stream]) one.dispose()
  }
}

const sevens = new Uint8Array(64).fill(7)

describe('work on another stream than the producer', () => {
  test('waits for pending copies', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using copy = DeviceBuffer.zeros(device, 'u8', 64)
    using from = new Produced()
    copy.copyFrom(from, { stream })
    expect(stream.query()).toBe(false)
    from.open()
    await stream.synchronize()
    expect(copy.toArraySync()).toEqual(sevens)
  })

  test('waits for the memory behind a view, which names the producer stream too', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using from = new Produced()
    using view = DeviceBuffer.view(device, from, 'u8')
    const half = view.slice(32)
    expect(view[memoryProtocol]).toMatchObject({ version: 1, stream: from.stream.handle })
    expect(half[memoryProtocol]).toMatchObject({ version: 1, stream: from.stream.handle, byteLength: 32 })
    const array = half.toArray({ stream })
    expect(stream.query()).toBe(false)
    from.open()
    expect(await array).toEqual(sevens.slice(32))
    from.isPending = false
    expect(view[memoryProtocol]).toMatchObject({ version: 0 })
    expect(view[memoryProtocol].stream).toBeUndefined()
    from.isPending = true
    expect(view[memoryProtocol].stream).toBe(from.stream.handle)
  })

  test('waits for a stream of another device', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using copy = DeviceBuffer.zeros(device, 'u8', 64)
    using from = new Produced(second)
    copy.copyFrom(from, { stream })
    expect(stream.query()).toBe(false)
    from.open()
    await stream.synchronize()
    expect(copy.toArraySync()).toEqual(sevens)
  })

  test('waits in copies of rows, of arrays and of many ranges', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using rows = PitchedBuffer.allocate(device, 'u8', { width: 8, height: 8 })
    using array = CudaArray.create(device, { format: 'u8', width: 8, height: 8 })
    using copy = DeviceBuffer.zeros(device, 'u8', 64)
    for (const queue of [
      (from: MemoryLike) => rows.copyFrom(from, { stream }),
      (from: MemoryLike) => rows.copyInto(from, { stream }),
      (from: MemoryLike) => array.copyFrom(from, { stream }),
      (from: MemoryLike) => prepareCopies(device, [{ target: copy, source: from }]).launch({ stream }),
    ]) {
      using from = new Produced()
      queue(from)
      expect(stream.query()).toBe(false)
      from.open()
      await stream.synchronize()
    }
  })

  test('does not wait if no work is pending, or on the same stream', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using copy = DeviceBuffer.zeros(device, 'u8', 64)
    using from = new Produced()
    from.isPending = false
    copy.copyFrom(from, { stream })
    await stream.synchronize()
    expect(copy.toArraySync()).toEqual(new Uint8Array(64))
    from.isPending = true
    copy.copyFrom(from, { stream: from.stream })
    from.open()
    await from.stream.synchronize()
    expect(copy.toArraySync()).toEqual(sevens)
  })

  test("is refused with the driver's status if the producer stream is invalid", () => {
    using copy = DeviceBuffer.zeros(device, 'u8', 64)
    using from = new Produced()
    const gone = { [memoryProtocol]: { ...from.buffer[memoryProtocol], version: 1, stream: 0x77n } } as MemoryLike
    expect(() => copy.copyFrom(gone)).toThrow('cuEventRecord')
  })
})

test('memory with gaps between elements is refused as a source and as a view', () => {
  using buffer = DeviceBuffer.zeros(device, 'f32', 16)
  using target = DeviceBuffer.zeros(device, 'f32', 16)
  const shape = { shape: [2, 4], strides: [8, 1], length: undefined }
  const strided = { [memoryProtocol]: { ...buffer[memoryProtocol], version: 1, ...shape } } as unknown as MemoryLike
  expect(() => target.copyFrom(strided)).toThrow('DeviceBuffer.copyFrom: source must be contiguous')
  expect(() => DeviceBuffer.view(device, strided, 'f32')).toThrow('DeviceBuffer.view: memory must be contiguous')
})
