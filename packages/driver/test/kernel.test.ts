import { type DType, decodeBF16, decodeF8E4M3, decodeF8E5M2, decodeF16, dtypeInfo } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import { compile, lastLaunch, shimEnvironment } from './support/shim.js'

const shim = compile('kernelShim')
Object.assign(process.env, shimEnvironment(shim), { SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, DisposedError, Module, PinnedBuffer, StatusError } = await import('@shoal/driver')
type Kernel<S extends readonly (DType | 'ptr')[]> = import('@shoal/driver').Kernel<S>

const good = { grid: 1, block: 32 }
let device: import('@shoal/driver').Device
let module: import('@shoal/driver').Module

beforeAll(() => {
  device = Device.get(0)
  module = Module.load(device, '.version 8.0')
})

afterAll(() => {
  module.dispose()
})

function argument(dtype: DType): DataView {
  const bytes = lastLaunch().arguments
  expect(bytes.length).toBe(dtypeInfo(dtype).bytes)
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

describe('launch', () => {
  test('runs axpy on its stream', async () => {
    const axpy = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
    const stream = device.createStream({ nonBlocking: true })
    const x = DeviceBuffer.from(
      device,
      Float32Array.from({ length: 1003 }, (_, index) => index),
    )
    const y = DeviceBuffer.from(device, new Float32Array(1003).fill(1))
    axpy.launch({ grid: 4, block: 256, stream }, 2, x, y, 1003)
    const result = await y.toArray({ stream })
    expect(result).toEqual(Float32Array.from({ length: 1003 }, (_, index) => 2 * index + 1))
    for (const object of [x, y, stream]) object.dispose()
  })

  test('hands over grid, block, shared memory and stream', () => {
    const kernel = module.kernel('args_4', ['i32'])
    using stream = device.createStream()
    kernel.launch({ grid: [5, 6, 7], block: [8, 4], sharedMemory: 1024, stream }, 1)
    expect(lastLaunch()).toMatchObject({ grid: [5, 6, 7], block: [8, 4, 1], sharedMemory: 1024, stream: stream.handle })
    kernel.launch({ grid: 9, block: 10 }, 1)
    expect(lastLaunch()).toMatchObject({ grid: [9, 1, 1], block: [10, 1, 1], sharedMemory: 0, stream: 0n })
    kernel.launch({ grid: [2 ** 31 - 1, 65535, 65535], block: [1, 2, 64] }, 1)
    expect(lastLaunch()).toMatchObject({ grid: [2 ** 31 - 1, 65535, 65535], block: [1, 2, 64] })
  })

  test('opts in above 48 KiB of shared memory, up to what the device has', () => {
    const kernel = module.kernel('args_4', ['i32'])
    const most = device.attribute('MAX_SHARED_MEMORY_PER_BLOCK_OPTIN') - 256
    expect(most).toBeGreaterThan(48 * 1024)
    kernel.launch({ ...good, sharedMemory: most }, 1)
    expect(lastLaunch().sharedMemory).toBe(most)
    expect(kernel.attribute('MAX_DYNAMIC_SHARED_SIZE_BYTES')).toBe(most)
    expect(() => kernel.launch({ ...good, sharedMemory: most + 1 }, 1)).toThrow(RangeError)
  })

  test('refuses more threads than the kernel can have', () => {
    const kernel = module.kernel('args_4', ['i32'])
    expect(kernel.maxThreadsPerBlock).toBe(512)
    expect(() => kernel.launch({ grid: 1, block: 513 }, 1)).toThrow(/513 threads; this kernel can have 512/)
    expect(() => kernel.launch({ grid: 1, block: [32, 32] }, 1)).toThrow(RangeError)
  })

  test.each([
    [{ ...good, grid: 0 }, RangeError],
    [{ ...good, grid: -1 }, RangeError],
    [{ ...good, grid: 2 ** 31 }, RangeError],
    [{ ...good, grid: Number.POSITIVE_INFINITY }, RangeError],
    [{ ...good, grid: [1, 65536] as const }, RangeError],
    [{ ...good, grid: Number.NaN }, TypeError],
    [{ ...good, grid: 1.5 }, TypeError],
    [{ ...good, grid: '1' as unknown as number }, TypeError],
    [{ ...good, grid: [] as unknown as number }, TypeError],
    [{ ...good, grid: [1, 1, 1, 1] as unknown as number }, TypeError],
    [{ ...good, grid: undefined as unknown as number }, TypeError],
    [{ ...good, block: 0 }, RangeError],
    [{ ...good, block: [1, 1, 65] as const }, RangeError],
    [{ ...good, sharedMemory: -1 }, RangeError],
    [{ ...good, sharedMemory: Number.NaN }, TypeError],
    [{ ...good, stream: {} as never }, TypeError],
  ])('refuses %o before the call', (config, kind) => {
    const kernel = module.kernel('args_4', ['i32'])
    const { launches } = lastLaunch()
    expect(() => kernel.launch(config, 1)).toThrow(kind)
    expect(() => kernel.prepare(config, 1)).toThrow(kind)
    expect(lastLaunch().launches).toBe(launches)
  })
})

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

  test('bool and complex', () => {
    module.kernel('args_1', ['bool']).launch(good, true)
    expect(argument('bool').getUint8(0)).toBe(1)
    module.kernel('args_8', ['complex64']).launch(good, [1.5, -2])
    expect([argument('complex64').getFloat32(0, true), argument('complex64').getFloat32(4, true)]).toEqual([1.5, -2])
    module.kernel('args_16', ['complex128']).launch(good, [3, 0.1])
    expect(argument('complex128').getFloat64(8, true)).toBe(0.1)
  })

  test('many arguments keep their places', () => {
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
  ] as const)('%s does not take %s', (type, value, kind) => {
    const bytes = type === 'ptr' ? 8 : dtypeInfo(type).bytes
    const kernel = module.kernel(`args_${bytes}`, [type]) as unknown as Kernel<['f32']>
    const { launches } = lastLaunch()
    expect(() => kernel.launch(good, value as number)).toThrow(kind)
    expect(lastLaunch().launches).toBe(launches)
  })

  test('too few and too many are refused', () => {
    const kernel = module.kernel('args_4_4', ['i32', 'i32'])
    const launch = kernel.launch.bind(kernel) as (...values: unknown[]) => void
    expect(() => launch(good, 1)).toThrow(/takes 2 arguments, not 1/)
    expect(() => launch(good, 1, 2, 3)).toThrow(TypeError)
  })

  test('types are known at compile time', () => {
    const kernel = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
    expectTypeOf(kernel.signature).toEqualTypeOf<readonly ['f32', 'ptr', 'ptr', 'i32']>()
    // @ts-expect-error a number is no pointer
    expect(() => kernel.launch(good, 1, 2, null, 3)).toThrow(TypeError)
    // @ts-expect-error an argument is missing
    expect(() => kernel.launch(good, 1, null, null)).toThrow(TypeError)
    // @ts-expect-error f32 takes numbers
    expect(() => kernel.launch(good, '1', null, null, 3)).toThrow(TypeError)
    // @ts-expect-error there is no such type
    expect(() => module.kernel('args_4', ['int'])).toThrow(TypeError)
  })
})

describe('pointer arguments', () => {
  test('take buffers, views, pinned memory, addresses, memory of others and null', () => {
    const kernel = module.kernel('args_8', ['ptr'])
    using buffer = DeviceBuffer.zeros(device, 'f64', 10)
    using pinned = PinnedBuffer.allocate(device, 'u8', 10, { mapped: true })
    const foreign = {
      [Symbol.for('cuda.memory')]: { version: 0, address: 64n, byteLength: 8, device: 0, context: 0n },
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

  test('memory of another device needs peer access', () => {
    const other = Device.get(1)
    const kernel = module.kernel('args_8', ['ptr'])
    using buffer = DeviceBuffer.zeros(other, 'f64', 10)
    const foreign = {
      [Symbol.for('cuda.memory')]: { version: 0, address: 64n, byteLength: 8, device: 1, context: 0n },
    } as never
    expect(() => kernel.launch(good, buffer)).toThrow(/memory of device 1, the kernel runs on device 0/)
    expect(() => kernel.launch(good, foreign)).toThrow(TypeError)
    device.enablePeerAccess(other)
    kernel.launch(good, buffer)
    kernel.launch(good, foreign)
    device.disablePeerAccess(other)
    expect(() => kernel.launch(good, buffer)).toThrow(TypeError)
  })

  test('a stream of another device is refused', () => {
    using stream = Device.get(1).createStream()
    expect(() => module.kernel('args_4', ['i32']).launch({ ...good, stream }, 1)).toThrow(
      /stream belongs to device 1, the operation to device 0/,
    )
  })
})

describe('prepared launches', () => {
  test('repeat what was packed, and change what is set', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    const prepared = module.kernel('args_4_8', ['f32', 'ptr']).prepare({ grid: 3, block: 32 }, 1.5, buffer)
    const { launches } = lastLaunch()
    prepared.launch()
    prepared.launch()
    expect(lastLaunch()).toMatchObject({ launches: launches + 2, grid: [3, 1, 1] })
    prepared.set(0, 2.5).launch()
    const bytes = lastLaunch().arguments
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    expect(view.getFloat32(0, true)).toBe(2.5)
    expect(view.getBigUint64(4, true)).toBe(buffer.address)
    expect(() => prepared.set(0, '1' as unknown as number)).toThrow(TypeError)
    expect(() => prepared.set(2 as 0, 1)).toThrow(RangeError)
    expect(() => prepared.set(0.5 as 0, 1)).toThrow(TypeError)
  })

  test('notice that an argument or the stream is gone', () => {
    const buffer = DeviceBuffer.zeros(device, 'f32', 4)
    const stream = device.createStream()
    const kernel = module.kernel('args_8', ['ptr'])
    const withBuffer = kernel.prepare(good, buffer)
    const onStream = kernel.prepare({ ...good, stream }, null)
    buffer.dispose()
    stream.dispose()
    expect(() => withBuffer.launch()).toThrow(DisposedError)
    expect(() => onStream.launch()).toThrow(DisposedError)
    withBuffer.set(0, null).launch()
  })

  test('do not disturb each other or plain launches', () => {
    const kernel = module.kernel('args_4', ['i32'])
    const [first, second] = [kernel.prepare(good, 1), kernel.prepare(good, 2)]
    kernel.launch(good, 3)
    first.launch()
    expect(argument('i32').getInt32(0, true)).toBe(1)
    second.launch()
    expect(argument('i32').getInt32(0, true)).toBe(2)
  })
})

describe('modules', () => {
  test('a signature is checked against the image', () => {
    expect(() => module.kernel('args_4_8', ['f32'])).toThrow(/has 2 parameters; the signature names 1/)
    expect(() => module.kernel('args_4', ['f32', 'f32'])).toThrow(/has 1 parameters; the signature names 2/)
    expect(() => module.kernel('args_4', ['f64'])).toThrow(/parameter 0 of args_4 has 4 bytes; the signature says f64/)
    expect(() => module.kernel('args_4', 'f32' as unknown as [])).toThrow(TypeError)
  })

  test('names are checked, and one that is not there is named', () => {
    expect(() => module.kernel('args_4\0', ['f32'])).toThrow(TypeError)
    expect(() => module.kernel('', [])).toThrow(RangeError)
    expect(() => module.kernel(5 as unknown as string, [])).toThrow(TypeError)
    expect(() => module.kernel('missing', [])).toThrow(/cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND.*\n?.*missing/)
    expect(() => module.global('missing')).toThrow(StatusError)
  })

  test('variables of the image are buffers that end with the module', async () => {
    const own = Module.load(device, '.version 8.0')
    const variable = own.global('variable', 'u32')
    expect(variable.length).toBe(4)
    expect(() => own.global('variable', 'complex128').length).not.toThrow()
    variable.dispose()
    const again = own.global('variable', 'u32')
    own.dispose()
    expect(() => again.address).toThrow(DisposedError)
    expect(() => own.kernel('args_4', ['i32'])).toThrow(DisposedError)
  })

  test('the log of the compiler is in the error, or on the module', async () => {
    const refused = (load: () => unknown) => expect(load).toThrow(/CUDA_ERROR_INVALID_PTX \(218\)[\s\S]*this is wrong/)
    refused(() => Module.load(device, 'wrong'))
    await expect(Module.loadAsync(device, 'wrong')).rejects.toThrow(/this is wrong/)
    using loaded = Module.load(device, 'right', { maxRegisters: 32, optimizationLevel: 2, lineInfo: true })
    expect(loaded.compilerLog).toBe('compiled with 7 options')
    using later = await Module.loadAsync(device, new TextEncoder().encode('right'), { debugInfo: true, verbose: true })
    expect(later.compilerLog).toBe('compiled with 6 options')
  })

  test('a kernel is refused after its module was disposed of', () => {
    const own = Module.load(device, '.version 8.0')
    const kernel = own.kernel('args_4', ['i32'])
    const prepared = kernel.prepare(good, 1)
    own.dispose()
    own.dispose()
    expect(() => kernel.launch(good, 1)).toThrow(DisposedError)
    expect(() => kernel.prepare(good, 1)).toThrow(DisposedError)
    expect(() => prepared.launch()).toThrow(DisposedError)
    expect(() => kernel.handle).toThrow(DisposedError)
  })
})
