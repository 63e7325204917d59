import {
  type DType,
  decodeBF16,
  decodeF8E4M3,
  decodeF8E5M2,
  decodeF16,
  defineArray,
  defineStruct,
  defineTuple,
  dtypeInfo,
} from '@shoal/types'
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import { compile, lastLaunch, shimEnvironment } from './support/shim.js'

const shim = compile('kernelShim')
Object.assign(process.env, shimEnvironment(shim), { SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, DisposedError, GrowableBuffer, ManagedBuffer, Module, PinnedBuffer } = await import(
  '@shoal/driver'
)
type Kernel<S extends readonly (DType | 'ptr')[]> = import('@shoal/driver').Kernel<S>

const good = { grid: 1, block: 32 }
let device: import('@shoal/driver').Device
let module: import('@shoal/driver').Module

beforeAll(() => {
  device = Device.get(0)
  module = Module.loadSync(device, '.version 8.0')
})

afterAll(() => {
  module.dispose()
})

function argument(dtype: DType): DataView {
  const bytes = lastLaunch().arguments
  expect(bytes.length).toBe(dtypeInfo(dtype).bytes)
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

describe('scalar arguments', () => {
  test.each([
    ['i8', -128, (view: DataView) => view.getInt8(0)],
    ['u8', 255, (view: DataView) => view.getUint8(0)],
    ['i16', -32768, (view: DataView) => view.getInt16(0, true)],
    ['u16', 65535, (view: DataView) => view.getUint16(0, true)],
    ['i32', -(2 ** 31), (view: DataView) => view.getInt32(0, true)],
    ['u32', 2 ** 32 - 1, (view: DataView) => view.getUint32(0, true)],
    ['f32', Math.fround(0.1), (view: DataView) => view.getFloat32(0, true)],
    ['f64', Math.PI, (view: DataView) => view.getFloat64(0, true)],
    ['f16', 1.5, (view: DataView) => decodeF16(view.getUint16(0, true))],
    ['bf16', -2.5, (view: DataView) => decodeBF16(view.getUint16(0, true))],
    ['f8e4m3', 0.5, (view: DataView) => decodeF8E4M3(view.getUint8(0))],
    ['f8e5m2', -4, (view: DataView) => decodeF8E5M2(view.getUint8(0))],
  ] as const)('%s', (dtype, value, read) => {
    const kernel = module.kernel(`args_${dtypeInfo(dtype).bytes}`, [dtype]) as unknown as Kernel<['f32']>
    kernel.launch(good, value)
    expect(read(argument(dtype))).toBe(value)
  })

  test.each([0, 1, -1, 2 ** 31, -(2 ** 31) - 1, 2 ** 53 - 1, -(2n ** 63n), 2n ** 63n - 1n])('i64 %s', (value) => {
    module.kernel('args_8', ['i64']).launch(good, value)
    expect(argument('i64').getBigInt64(0, true)).toBe(BigInt(value))
  })

  test.each([0, 1, 2 ** 31, 2 ** 32, 2 ** 53 - 1, 2n ** 64n - 1n])('u64 %s', (value) => {
    module.kernel('args_8', ['u64']).launch(good, value)
    expect(argument('u64').getBigUint64(0, true)).toBe(BigInt(value))
  })

  test('a small i64 or u64 after a large one contains no bits of the large one', () => {
    const unsigned = module.kernel('args_8', ['u64'])
    const signed = module.kernel('args_8', ['i64'])
    unsigned.launch(good, 2n ** 64n - 1n)
    unsigned.launch(good, 5)
    expect(argument('u64').getBigUint64(0, true)).toBe(5n)
    for (const value of [-1, 5, -(2 ** 31), 2 ** 31 - 1]) {
      signed.launch(good, 2n ** 62n + 3n)
      signed.launch(good, value)
      expect(argument('i64').getBigInt64(0, true)).toBe(BigInt(value))
    }
  })

  test('bool and complex', () => {
    module.kernel('args_1', ['bool']).launch(good, true)
    expect(argument('bool').getUint8(0)).toBe(1)
    module.kernel('args_8', ['complex64']).launch(good, [1.5, -2])
    expect([argument('complex64').getFloat32(0, true), argument('complex64').getFloat32(4, true)]).toEqual([1.5, -2])
    module.kernel('args_16', ['complex128']).launch(good, [3, 0.1])
    expect(argument('complex128').getFloat64(8, true)).toBe(0.1)
  })

  test('many arguments keep their positions', () => {
    const signature = ['u8', 'f64', 'i16', 'ptr', 'complex128', 'f16', 'u64', 'i32', 'f32', 'bool'] as const
    const sizes = signature.map((type) => (type === 'ptr' ? 8 : dtypeInfo(type).bytes))
    const kernel = module.kernel(`args_${sizes.join('_')}`, signature)
    kernel.launch(good, 7, 1.25, -3, 0x1234_5678_9abc_def0n, [5, 6], 2, 9, -10, 0.5, false)
    const bytes = lastLaunch().arguments
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    expect(view.getUint8(0)).toBe(7)
    expect(view.getFloat64(1, true)).toBe(1.25)
    expect(view.getInt16(9, true)).toBe(-3)
    expect(view.getBigUint64(11, true)).toBe(0x1234_5678_9abc_def0n)
    expect(view.getFloat64(27, true)).toBe(6)
    expect(view.getFloat32(49, true)).toBe(0.5)
    expect(bytes.length).toBe(54)
  })

  test.each([
    ['i32', 2 ** 31, RangeError],
    ['i32', 0.5, TypeError],
    ['i32', '1', TypeError],
    ['i32', 1n, TypeError],
    ['i32', undefined, TypeError],
    ['u32', -1, RangeError],
    ['u8', 256, RangeError],
    ['f32', '1', TypeError],
    ['f32', null, TypeError],
    ['i64', 2 ** 53, RangeError],
    ['i64', 2n ** 63n, RangeError],
    ['u64', -1, RangeError],
    ['u64', 0.5, TypeError],
    ['bool', 1, TypeError],
    ['complex64', 1, TypeError],
    ['ptr', 1, TypeError],
    ['ptr', -1n, RangeError],
    ['ptr', 2n ** 64n, RangeError],
    ['ptr', undefined, TypeError],
    ['ptr', new Float32Array(3), TypeError],
    ['ptr', {}, TypeError],
  ] as const)('%s refuses %s', (type, value, kind) => {
    const bytes = type === 'ptr' ? 8 : dtypeInfo(type).bytes
    const kernel = module.kernel(`args_${bytes}`, [type]) as unknown as Kernel<['f32']>
    const { launches } = lastLaunch()
    expect(() => kernel.launch(good, value as number)).toThrow(kind)
    expect(() => kernel.launch(good, value as number)).toThrow(/^Kernel\.launch: args\[0\]/)
    expect(() => kernel.prepare(good, value as number)).toThrow(/^Kernel\.prepare: args\[0\]/)
    expect(lastLaunch().launches).toBe(launches)
  })

  test('too few and too many are refused', () => {
    const kernel = module.kernel('args_4_4', ['i32', 'i32'])
    const launch = kernel.launch.bind(kernel) as (...values: unknown[]) => void
    expect(() => launch(good, 1)).toThrow('Kernel.launch: args must be the 2 arguments of args_4_4, not 1')
    expect(() => launch(good, 1, 2, 3)).toThrow(TypeError)
    const prepare = kernel.prepare.bind(kernel) as (...values: unknown[]) => void
    expect(() => prepare(good, 1)).toThrow('Kernel.prepare: args must be the 2 arguments of args_4_4, not 1')
  })

  test('types are known at compile time', () => {
    const kernel = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
    expectTypeOf(kernel.signature).toEqualTypeOf<readonly ['f32', 'ptr', 'ptr', 'i32']>()
    // @ts-expect-error a number is not a pointer
    expect(() => kernel.launch(good, 1, 2, null, 3)).toThrow(TypeError)
    // @ts-expect-error an argument is missing
    expect(() => kernel.launch(good, 1, null, null)).toThrow(TypeError)
    // @ts-expect-error f32 takes numbers
    expect(() => kernel.launch(good, '1', null, null, 3)).toThrow(TypeError)
    // @ts-expect-error this type does not exist
    expect(() => module.kernel('args_4', ['int'])).toThrow(TypeError)
  })
})

describe('pointer arguments', () => {
  test('accept buffers, views, pinned memory, addresses, foreign memory and null', () => {
    const kernel = module.kernel('args_8', ['ptr'])
    using buffer = DeviceBuffer.zeros(device, 'f64', 10)
    using pinned = PinnedBuffer.allocate(device, 'u8', 10, { mapped: true })
    const foreign = {
      [Symbol.for('cuda.memory')]: { version: 0, address: 64n, byteLength: 8, deviceOrdinal: 0, context: 0n },
    }
    for (const [value, address] of [
      [buffer, buffer.address],
      [buffer.slice(3), buffer.address + 24n],
      [pinned, pinned.address],
      [123n, 123n],
      [null, 0n],
      [foreign as never, 64n],
    ] as const) {
      kernel.launch(good, value)
      expect(argument('u64').getBigUint64(0, true)).toBe(address)
    }
  })

  test('a disposed buffer, or a view of one, is refused', () => {
    const kernel = module.kernel('args_8', ['ptr'])
    const buffer = DeviceBuffer.zeros(device, 'f64', 10)
    const view = buffer.slice(1)
    buffer.dispose()
    expect(() => kernel.launch(good, buffer)).toThrow(DisposedError)
    expect(() => kernel.launch(good, view)).toThrow(DisposedError)
  })

  test('a view is refused after its object freed the memory, also in a prepared launch', () => {
    const growable = GrowableBuffer.reserve(device, 'f32', { maximumLength: 1 << 20, length: 4 })
    const managed = ManagedBuffer.allocate(device, 'f32', 4)
    const pinned = PinnedBuffer.allocate(device, 'f32', 4, { mapped: true })
    const kernel = module.kernel('args_8', ['ptr'])
    for (const [owner, memory] of [
      [growable, growable.buffer],
      [managed, managed.memory],
      [pinned, DeviceBuffer.view(device, pinned, 'f32')],
    ] as const) {
      const part = memory.slice(1, 3)
      const prepared = kernel.prepare(good, part)
      for (const one of [memory, part]) kernel.launch(good, one)
      prepared.launch()
      owner.dispose()
      for (const one of [memory, part])
        expect(() => kernel.launch(good, one), owner.constructor.name).toThrow(DisposedError)
      expect(() => prepared.launch()).toThrow(DisposedError)
    }
  })

  test('a disposed view is refused, and its buffer stays usable', () => {
    const kernel = module.kernel('args_8', ['ptr'])
    using buffer = DeviceBuffer.zeros(device, 'f64', 10)
    const view = buffer.slice(1)
    view.dispose()
    expect(() => kernel.launch(good, view)).toThrow(DisposedError)
    kernel.launch(good, buffer)
  })

  test('memory of another device requires peer access', () => {
    const other = Device.get(1)
    const kernel = module.kernel('args_8', ['ptr'])
    using buffer = DeviceBuffer.zeros(other, 'f64', 10)
    const foreign = {
      [Symbol.for('cuda.memory')]: { version: 0, address: 64n, byteLength: 8, deviceOrdinal: 1, context: 0n },
    } as never
    expect(() => kernel.launch(good, buffer)).toThrow(
      /args\[0\] must be memory that device 0, where the kernel runs, can use, not memory of device 1/,
    )
    expect(() => kernel.launch(good, foreign)).toThrow(/not memory of device 1/)
    device.enablePeerAccess(other)
    kernel.launch(good, buffer)
    kernel.launch(good, foreign)
    device.disablePeerAccess(other)
    expect(() => kernel.launch(good, buffer)).toThrow(TypeError)
  })

  test('a stream of another device is refused', () => {
    using stream = Device.get(1).createStream()
    expect(() => module.kernel('args_4', ['i32']).launch({ ...good, stream }, 1)).toThrow(
      /Kernel.launch: stream must be one of device 0, not of device 1/,
    )
  })
})

const Params = defineStruct('Params', { count: 'u8', scale: 'f64', offset: ['i16', 3], data: 'ptr' })
const Aligned = defineStruct('Aligned', { x: 'f32', y: 'f32', z: 'f32' }, { align: 16 })

describe('struct arguments', () => {
  test('accept objects, laid out as in C, between other arguments', () => {
    const kernel = module.kernel('args_4_32_8_16_2', ['i32', Params, 'ptr', Aligned, 'u16'])
    kernel.launch(good, -1, { count: 7, scale: 0.1, offset: [1, -2, 3], data: 99n }, 5n, { x: 1, y: 2, z: 3 }, 65535)
    const { arguments: bytes } = lastLaunch()
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    expect(bytes.length).toBe(4 + 32 + 8 + 16 + 2)
    expect(view.getInt32(0, true)).toBe(-1)
    expect(Params.read(bytes, 4)).toEqual({ count: 7, scale: 0.1, offset: [1, -2, 3], data: 99n })
    expect(view.getBigUint64(36, true)).toBe(5n)
    expect(Aligned.read(bytes, 44)).toEqual({ x: 1, y: 2, z: 3 })
    expect(view.getUint16(60, true)).toBe(65535)
  })

  test('accept arrays and tuples, laid out as structs', () => {
    const Row = defineArray('f32', 3)
    const Entry = defineTuple(['u8', 'f64', Row])
    const kernel = module.kernel('args_4_32_12', ['i32', Entry, Row])
    kernel.launch(good, 5, [7, 0.1, [1, 2, 3]], [4, 5, 6])
    const { arguments: bytes } = lastLaunch()
    expect(Entry.read(bytes, 4)).toEqual([7, 0.1, [1, 2, 3]])
    expect(Row.read(bytes, 36)).toEqual([4, 5, 6])
    kernel.launch(good, 5, Entry.encode([8, 0.5, [0, 0, 1]]), Row.encode([9, 9, 9]))
    expect(Entry.read(lastLaunch().arguments, 4)).toEqual([8, 0.5, [0, 0, 1]])
    expect(() => kernel.launch(good, 5, [7, 0.1] as never, [1, 2, 3])).toThrow(
      'Kernel.launch: args[1]: [u8, f64, f32[3]] must be an array of 3, not of 2',
    )
  })

  test('larger than all other arguments, and passed twice, do not overlap', () => {
    const Large = defineStruct('Large', { values: ['u32', 60] })
    const kernel = module.kernel('args_240_240', [Large, Large])
    const values = (first: number) => ({ values: Array.from({ length: 60 }, (_, index) => first + index) })
    kernel.launch(good, values(1), values(1000))
    expect(Large.decode(lastLaunch().arguments)).toEqual([values(1), values(1000)])
  })

  test.each([
    [{ count: 7, scale: 1, offset: [1, 2, 3] }, TypeError, 'Params.data'],
    [{ count: 256, scale: 1, offset: [1, 2, 3], data: 0n }, RangeError, 'Params.count'],
    [{ count: 7, scale: '1', offset: [1, 2, 3], data: 0n }, TypeError, 'Params.scale'],
    [{ count: 7, scale: 1, offset: [1, 2], data: 0n }, RangeError, 'Params.offset'],
    [{ count: 7, scale: 1, offset: [1, 2, 3], data: 0n, size: 1 }, TypeError, 'size'],
    [5, TypeError, 'Params'],
    [null, TypeError, 'Params'],
    [undefined, TypeError, 'Params'],
  ])('%o is refused before the driver call', (value, kind, field) => {
    const kernel = module.kernel('args_32', [Params])
    const { launches } = lastLaunch()
    expect(() => kernel.launch(good, value as never)).toThrow(kind)
    expect(() => kernel.launch(good, value as never)).toThrow(/^Kernel\.launch: args\[0\]: /)
    expect(() => kernel.launch(good, value as never)).toThrow(field)
    expect(lastLaunch().launches).toBe(launches)
  })

  test('accept the bytes that encode() produced', () => {
    const kernel = module.kernel('args_4_32', ['i32', Params])
    const value = { count: 7, scale: 0.1, offset: [1, -2, 3], data: 99n }
    kernel.launch(good, 5, Params.encode(value))
    expect(Params.read(lastLaunch().arguments, 4)).toEqual(value)
    const part = new Uint8Array(40).subarray(8)
    Params.write(part, { ...value, count: 8 })
    kernel.launch(good, 5, part)
    expect(Params.read(lastLaunch().arguments, 4)).toEqual({ ...value, count: 8 })
  })

  class Longer extends Uint8Array {
    override get byteLength() {
      return 32
    }
  }
  test.each([
    ['one byte less', new Uint8Array(31), RangeError, 'args[1] must be the 32 bytes of a Params, not 31'],
    ['two of them', new Uint8Array(64), RangeError, 'args[1] must be the 32 bytes of a Params, not 64'],
    ['a length that is not true', new Longer(8), RangeError, 'args[1] must be the 32 bytes of a Params, not 8'],
    ['another view', new DataView(new ArrayBuffer(32)), TypeError, 'args[1]'],
    ['another array', new Float32Array(8), TypeError, 'args[1]'],
  ])('bytes are refused: %s', (_, bytes, kind, text) => {
    const kernel = module.kernel('args_4_32', ['i32', Params])
    const { launches } = lastLaunch()
    expect(() => kernel.launch(good, 5, bytes as never)).toThrow(kind)
    expect(() => kernel.launch(good, 5, bytes as never)).toThrow(text)
    expect(lastLaunch().launches).toBe(launches)
  })

  test('their size is checked against the image', () => {
    expect(() => module.kernel('args_24', [Params])).toThrow(
      'Module.kernel: signature[0] must have 24 bytes, as in args_24, not the 32 of Params',
    )
  })

  test('their fields are known at compile time', () => {
    const kernel = module.kernel('args_16_4', [Aligned, 'i32'])
    expectTypeOf(kernel.launch)
      .parameter(1)
      .toEqualTypeOf<{ readonly x: number; readonly y: number; readonly z: number } | Uint8Array>()
    // @ts-expect-error z is missing
    expect(() => kernel.launch(good, { x: 1, y: 2 }, 3)).toThrow(TypeError)
    // @ts-expect-error a struct takes an object
    expect(() => kernel.launch(good, null, 3)).toThrow(TypeError)
  })
})
