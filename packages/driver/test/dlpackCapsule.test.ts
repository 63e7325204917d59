import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { type DType, dtypeInfo, type MemoryLike, memoryProtocol, streamProtocol } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
import { collectUntil, tensorAddon } from './support/tensors.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, ManagedBuffer, PinnedBuffer, Stream } = await import('@shoal/driver/shared')
const { fromDLPack, toDLPack } = await import('@shoal/driver/dlpack')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const addon = tensorAddon()
const codes = { i: 0, u: 1, f: 2, bf: 4, complex: 5 }

beforeEach(() => {
  expect([device.used, second.used]).toEqual([0, 0])
  addon.deletions()
})

describe('toDLPack', () => {
  const dtypes: [DType, number, number][] = [
    ...(['i8', 'i16', 'i32', 'i64'] as const).map(
      (d) => [d, codes.i, dtypeInfo(d).bytes * 8] as [DType, number, number],
    ),
    ...(['u8', 'u16', 'u32', 'u64'] as const).map(
      (d) => [d, codes.u, dtypeInfo(d).bytes * 8] as [DType, number, number],
    ),
    ['f16', codes.f, 16],
    ['f32', codes.f, 32],
    ['f64', codes.f, 64],
    ['bf16', codes.bf, 16],
    ['complex64', codes.complex, 64],
    ['complex128', codes.complex, 128],
    ['bool', 6, 8],
    ['f8e4m3', 10, 8],
    ['f8e5m2', 12, 8],
  ]

  test.each(dtypes)('%s has code %i and %i bits, and survives a round trip', (dtype, code, bits) => {
    using buffer = DeviceBuffer.zeros(second, dtype, 6)
    for (const versioned of [false, true]) {
      using capsule = toDLPack(buffer, { versioned })
      const address = capsule.take()
      const expected = {
        data: buffer.address,
        deviceType: 2,
        deviceId: 1,
        code,
        bits,
        lanes: 1,
        shape: [6],
        strides: [1],
      }
      expect(addon.read(address, versioned)).toMatchObject({
        ...expected,
        ...(versioned ? { major: 1, flags: 0 } : {}),
      })
      using tensor = fromDLPack(address, { versioned })
      expect([tensor.dtype, tensor.shape, tensor.deviceOrdinal, tensor.deviceType]).toEqual([dtype, [6], 1, 'cuda'])
    }
  })

  test('exports shape and strides of the memory, including gaps', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 32)
    const matrix = (extra: object): MemoryLike =>
      ({ [memoryProtocol]: { ...buffer[memoryProtocol], version: 1, length: undefined, ...extra } }) as never
    for (const layout of [
      { shape: [4, 4], strides: [8, 1] },
      { shape: [8, 4], strides: [1, 8] },
      { shape: [], strides: [] },
      { shape: [2, 0], strides: [9, 9] },
    ]) {
      using capsule = toDLPack(matrix(layout))
      const address = capsule.take()
      expect(addon.read(address, false)).toMatchObject(layout)
      using tensor = fromDLPack(address)
      expect(tensor).toMatchObject(layout)
    }
  })

  test('exports the device that owns the memory', () => {
    using pinned = PinnedBuffer.allocate(device, 'f32', 4)
    using managed = ManagedBuffer.allocate(second, 'f32', 4)
    for (const [memory, deviceType, code, id] of [
      [pinned, undefined, 3, 0],
      [pinned, 'cpu', 1, 0],
      [managed, 'cudaManaged', 13, 1],
      [managed, 'cuda', 2, 1],
    ] as const) {
      using capsule = toDLPack(memory, { deviceType })
      const address = capsule.take()
      expect(addon.read(address, false)).toMatchObject({ deviceType: code, deviceId: id })
      using tensor = fromDLPack(address)
      expect(tensor[memoryProtocol].deviceOrdinal).toBe(memory === pinned ? -1 : 1)
    }
    expect(() => toDLPack(pinned, { deviceType: 'cuda' })).toThrow(
      "toDLPack: deviceType must be one of memory of the host, not 'cuda'",
    )
    expect(() => toDLPack(managed, { deviceType: 'cpu' })).toThrow(
      "toDLPack: deviceType must be one of memory of a device, not 'cpu'",
    )
  })

  test('resolves `released` only after the consumer calls the deleter, on any thread', async () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    for (const versioned of [false, true]) {
      const capsule = toDLPack(buffer, { versioned })
      const address = capsule.take()
      let isReleased = false
      const released = capsule.released.then(() => {
        isReleased = true
      })
      capsule.dispose()
      await new Promise((resolve) => setImmediate(resolve))
      expect(isReleased).toBe(false)
      // Calls the deleter more than once, like a faulty consumer.
      addon.end(address, versioned, 2)
      await released
    }
  })

  test('dispose() releases a capsule that no consumer took, and take() throws afterwards', async () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    const capsule = toDLPack(buffer)
    capsule.dispose()
    capsule.dispose()
    await capsule.released
    expect(() => capsule.take()).toThrow('DLPackCapsule')
    expect(() => fromDLPack(capsule)).toThrow('DLPackCapsule')
    const taken = toDLPack(buffer)
    addon.end(taken.take(), false, 1)
    expect(() => taken.take()).toThrow('DLPackCapsule.take: the tensor must be taken once, and was taken before')
    expect(() => fromDLPack(taken)).toThrow('fromDLPack: the tensor must be taken once')
    await taken.released
    expect(inspect(taken)).toBe('DLPackCapsule { versioned: false, taken: true }')
  })

  test('the garbage collector releases a capsule that no consumer took', async () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    let isReleased = false
    ;(() => {
      void toDLPack(buffer).released.then(() => {
        isReleased = true
      })
    })()
    await collectUntil(() => isReleased)
  })

  test('exports read-only memory only as a versioned tensor, which has the flag', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    const readOnly = { [memoryProtocol]: { ...buffer[memoryProtocol], readOnly: true } }
    expect(() => toDLPack(readOnly)).toThrow('toDLPack: versioned must be true for read-only memory')
    using tensor = fromDLPack(toDLPack(readOnly, { versioned: true }))
    expect(tensor[memoryProtocol].readOnly).toBe(true)
  })

  test("makes the consumer's stream wait for pending work", async () => {
    using own = Stream.create(device, { nonBlocking: true })
    using gate = PinnedBuffer.allocate(device, 'u32', 1)
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    using producer = Stream.create(device, { nonBlocking: true })
    gate.array[0] = 0
    producer.waitValue(gate, 1)
    const pending = {
      [memoryProtocol]: { ...buffer[memoryProtocol], version: 1, stream: producer.handle as bigint },
    } as const
    let isDone: boolean[] = []
    try {
      expect(() => toDLPack(pending)).toThrow('toDLPack: stream must be named, as work is pending on the memory')
      toDLPack(pending, { stream: own }).dispose()
      // A default stream without a context belongs to the memory's device.
      const legacy = { version: 0, handle: 1n, deviceOrdinal: -1, context: 0n } as const
      toDLPack(pending, { stream: { [streamProtocol]: legacy } }).dispose()
      isDone = [own.query(), device.defaultStream.query()]
    } finally {
      // Work that waits for the gate would otherwise wait forever.
      gate.array[0] = 1
    }
    await own.synchronize()
    await device.defaultStream.synchronize()
    expect(isDone).toEqual([false, false])
  })

  test.each([
    [undefined, undefined, TypeError, "toDLPack: memory must be an object with [Symbol.for('cuda.memory')]"],
    ['buffer', { versioned: 1 }, TypeError, 'toDLPack: versioned must be'],
    ['buffer', { deviceType: 'gpu' }, TypeError, 'toDLPack: deviceType must be'],
    ['buffer', { stream: 7 }, TypeError, 'toDLPack: stream must be'],
    ['buffer', { streams: 7 }, TypeError, 'streams'],
    ['bytes', {}, TypeError, 'toDLPack: memory.dtype must be the name of a dtype'],
  ])('refuses %s with %o', (which, options, errorClass, message) => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    const bytes = { [memoryProtocol]: { ...buffer[memoryProtocol], dtype: undefined, length: undefined } }
    const memory = which === 'bytes' ? bytes : which === 'buffer' ? buffer : undefined
    expect(() => toDLPack(memory as never, options as never)).toThrow(errorClass)
    expect(() => toDLPack(memory as never, options as never)).toThrow(message)
  })
})

test('awaiting `released` keeps the process alive until the deleter runs', () => {
  const program = `
    import { Device, DeviceBuffer } from '@shoal/driver'
    import { fromDLPack, toDLPack } from '@shoal/driver/dlpack'
    const buffer = DeviceBuffer.zeros(Device.get(0), 'f32', 3)
    const capsule = toDLPack(buffer)
    const tensor = fromDLPack(capsule.take())
    setTimeout(() => tensor.dispose(), 100).unref()
    await capsule.released
    buffer.dispose()
    console.log('released')`
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('../', import.meta.url)),
    encoding: 'utf8',
  })
  expect([status, stdout]).toEqual([0, 'released\n'])
})
