import { inspect } from 'node:util'
import { type DType, dtypeInfo, type MemoryLike, memoryProtocol } from '@shoal/types'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { type RawTensor, tensorAddon } from './tensors.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, ManagedBuffer, PinnedBuffer, Stream } = await import('@shoal/cuda-base')
const { DLPackCapsule, fromDLPack, toDLPack } = await import('@shoal/cuda-base/dlpack')
const { TestDevice } = await import('./support.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const addon = tensorAddon()
const codes = { i: 0, u: 1, f: 2, bf: 4, complex: 5 }

beforeEach(() => {
  expect([device.used, second.used]).toEqual([0, 0])
  addon.deletions()
})

/** The collector, as long as it has not found what it should. */
async function collectUntil(isDone: () => boolean): Promise<void> {
  await vi.waitFor(
    () => {
      ;(globalThis as { gc?: () => void }).gc?.()
      if (!isDone()) throw new Error('not collected')
    },
    { timeout: 20_000, interval: 10 },
  )
}

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

  test.each(dtypes)('%s has code %i and %i bits, and comes back', (dtype, code, bits) => {
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

  test('has shape and strides of the memory, gaps included', () => {
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

  test('says whose memory it is', () => {
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

  test('calls nothing before the consumer is done, and then tells, from whichever thread', async () => {
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
      // More often than once, as a broken consumer would.
      addon.end(address, versioned, 2)
      await released
    }
  })

  test('is released by dispose() where nobody took it, and cannot be taken then', async () => {
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

  test.runIf((globalThis as { gc?: () => void }).gc !== undefined)(
    'is released by the collector where nobody took it',
    async () => {
      using buffer = DeviceBuffer.zeros(device, 'f32', 4)
      let isReleased = false
      ;(() => {
        void toDLPack(buffer).released.then(() => {
          isReleased = true
        })
      })()
      await collectUntil(() => isReleased)
    },
  )

  test('read-only memory needs the flag that a versioned tensor has', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    const readOnly = { [memoryProtocol]: { ...buffer[memoryProtocol], readOnly: true } }
    expect(() => toDLPack(readOnly)).toThrow('toDLPack: versioned must be true for read-only memory')
    using tensor = fromDLPack(toDLPack(readOnly, { versioned: true }))
    expect(tensor[memoryProtocol].readOnly).toBe(true)
  })

  test('has the stream of the consumer wait for what is pending', async () => {
    using own = Stream.create(device, { nonBlocking: true })
    using gate = PinnedBuffer.allocate(device, 'u32', 1)
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    using producer = Stream.create(device, { nonBlocking: true })
    gate.array[0] = 0
    producer.waitValue(gate, 1)
    const pending = {
      [memoryProtocol]: { ...buffer[memoryProtocol], version: 1, stream: producer.handle as bigint },
    } as const
    expect(() => toDLPack(pending)).toThrow('toDLPack: stream must be named, as work is pending on the memory')
    toDLPack(pending, { stream: own }).dispose()
    const isDone = own.query()
    gate.array[0] = 1
    await own.synchronize()
    expect(isDone).toBe(false)
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

describe('fromDLPack', () => {
  test('takes an External and an address over, and calls the deleter once', async () => {
    using buffer = DeviceBuffer.from(
      device,
      Float32Array.from({ length: 24 }, (_, index) => index),
    )
    for (const kind of [{}, { external: 1 }, { major: 1 }, { major: 1, external: 1 }] as const) {
      const versioned = 'major' in kind
      const tensor = fromDLPack(addon.make({ ...kind, data: buffer.address, byteOffset: 16, shape: [4, 5] }), {
        versioned,
      })
      expect(tensor).toMatchObject({
        shape: [4, 5],
        strides: [5, 1],
        length: 20,
        byteLength: 80,
        dtype: 'f32',
        deviceType: 'cuda',
      })
      using view = DeviceBuffer.view(device, tensor, 'f32')
      expect(await view.toArray()).toEqual(Float32Array.from({ length: 20 }, (_, index) => index + 4))
      tensor.dispose()
      tensor.dispose()
      expect(addon.deletions()).toBe(1)
      expect(() => view.toArraySync()).toThrow('DLPackTensor')
      expect(() => tensor[memoryProtocol]).toThrow('DLPackTensor')
    }
  })

  test('offers memory with gaps as that, and names the stream that it was told', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 32)
    using stream = Stream.create(device)
    using tensor = fromDLPack(addon.make({ data: buffer.address, shape: [4, 4], strides: [8, 1] }), { stream })
    expect(tensor[memoryProtocol]).toMatchObject({
      version: 1,
      shape: [4, 4],
      strides: [8, 1],
      stream: stream.handle,
      byteLength: 112,
    })
    expect(() => DeviceBuffer.view(device, tensor, 'f32')).toThrow('DeviceBuffer.view: memory must be contiguous')
    expect(inspect(tensor)).toBe("DLPackTensor { dtype: 'f32', shape: '[4,4]', deviceType: 'cuda', deviceOrdinal: 0 }")
  })

  test('needs no deleter, and takes tensors without elements or dimensions', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 1)
    fromDLPack(addon.make({ shape: [0, 3], noDeleter: 1 })).dispose()
    fromDLPack(addon.make({ data: buffer.address, shape: [] })).dispose()
    fromDLPack(addon.make({ data: buffer.address, ndim: 0 })).dispose()
    expect(addon.deletions()).toBe(2)
  })

  test.runIf((globalThis as { gc?: () => void }).gc !== undefined)(
    'the collector calls the deleter, and says so',
    async () => {
      const warnings: string[] = []
      const note = (warning: Error): void => void warnings.push(warning.message)
      process.on('warning', note)
      ;(() => void fromDLPack(addon.make({ shape: [0] })))()
      let deletions = 0
      await collectUntil(() => {
        deletions += addon.deletions()
        return deletions > 0 && warnings.length > 0
      })
      process.off('warning', note)
      expect(deletions).toBe(1)
      expect(warnings[0]).toContain(
        'A DLPackTensor of 0 bytes was dropped without dispose(); its deleter is called now',
      )
    },
  )

  const refused: [RawTensor, new () => Error, string][] = [
    [{ lanes: 4 }, RangeError, 'capsule.dtype.lanes must be 1'],
    [{ bits: 48 }, TypeError, "capsule.dtype must be a type that has a dtype here, not 'code 2 with 48 bits'"],
    [{ code: 3, bits: 64 }, TypeError, 'capsule.dtype must be'],
    [
      { deviceType: 10 },
      TypeError,
      "capsule.device must be memory of the host or of CUDA, not 'device type 10 of DLPack'",
    ],
    [{ deviceId: -1 }, RangeError, 'capsule.device.device_id must be from 0, not -1'],
    [{ ndim: -1 }, RangeError, 'capsule.ndim must be from 0 to 64, not -1'],
    [{ ndim: 65 }, RangeError, 'capsule.ndim must be'],
    [{ shape: [-2] }, RangeError, 'capsule.shape[0] must be an integer from 0'],
    [{ strides: [-1] }, RangeError, 'capsule.strides[0] must be an integer from 0'],
    [{ shape: [2 ** 40, 2 ** 40] }, RangeError, 'capsule.shape must be of less than 2^53 bytes'],
    [{ data: 0n }, RangeError, 'capsule.data must be an address other than 0'],
    [{ major: 2 }, RangeError, "capsule.version must be of DLPack 1.x, not '2.0'"],
  ]
  test.each(refused)("refuses %o, which stays the caller's", (wrong, errorClass, message) => {
    const versioned = wrong.major !== undefined
    const address = addon.make({ data: 4096n, shape: [4], ...wrong }) as bigint
    expect(() => fromDLPack(address, { versioned })).toThrow(errorClass)
    expect(() => fromDLPack(address, { versioned })).toThrow(`fromDLPack: ${message}`)
    expect(addon.deletions()).toBe(0)
    addon.end(address, versioned, 1)
  })

  test('a shape that is missing is refused', () => {
    const address = addon.make({ data: 4096n, ndim: 2 }) as bigint
    expect(() => fromDLPack(address)).toThrow('fromDLPack: capsule.shape must be of 2 numbers, not null')
    addon.end(address, false, 1)
  })

  test.each([
    [
      undefined,
      TypeError,
      'fromDLPack: capsule must be a DLPackCapsule, an External or the address of a tensor, not undefined',
    ],
    [{}, TypeError, 'not a plain object'],
    [4096, TypeError, 'not 4096'],
    [0n, RangeError, 'capsule must be the address of a tensor, a multiple of 8, not 0n'],
    [4097n, RangeError, 'not 4097n'],
    [-1n, RangeError, 'capsule must be'],
  ])('refuses %o', (capsule, errorClass, message) => {
    expect(() => fromDLPack(capsule as never)).toThrow(errorClass)
    expect(() => fromDLPack(capsule as never)).toThrow(message)
  })

  test('a capsule knows what it points to', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    using capsule = toDLPack(buffer, { versioned: true })
    expect(() => fromDLPack(capsule, { versioned: false })).toThrow(
      'fromDLPack: versioned must be true, as the capsule is',
    )
    expect(capsule).toBeInstanceOf(DLPackCapsule)
    using tensor = fromDLPack(capsule)
    expect([capsule.taken, tensor.length]).toEqual([true, 4])
  })
})
