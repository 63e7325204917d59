import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import {
  type DecodedArrayOf,
  type DType,
  decodeArray,
  dtypeInfo,
  dtypeOf,
  dtypes,
  encodeArray,
  isDType,
  type OwnedArrayOf,
  type TypedArrayOf,
} from '@shoal/types'
import { describe, expect, expectTypeOf, it } from 'vitest'

describe('dtypeInfo', () => {
  it.each([
    ['i8', 1, 'int', Int8Array],
    ['u8', 1, 'uint', Uint8Array],
    ['i16', 2, 'int', Int16Array],
    ['u16', 2, 'uint', Uint16Array],
    ['i32', 4, 'int', Int32Array],
    ['u32', 4, 'uint', Uint32Array],
    ['i64', 8, 'int', BigInt64Array],
    ['u64', 8, 'uint', BigUint64Array],
    ['f16', 2, 'float', Uint16Array],
    ['bf16', 2, 'float', Uint16Array],
    ['f8e4m3', 1, 'float', Uint8Array],
    ['f8e5m2', 1, 'float', Uint8Array],
    ['f32', 4, 'float', Float32Array],
    ['f64', 8, 'float', Float64Array],
    ['complex64', 8, 'complex', Float32Array],
    ['complex128', 16, 'complex', Float64Array],
    ['bool', 1, 'bool', Uint8Array],
  ] as const)('%s has %d bytes', (name, bytes, kind, typedArray) => {
    expect(dtypeInfo(name)).toMatchObject({ name, bytes, alignment: bytes, kind, typedArray })
    expect(new typedArray(dtypeInfo(name).arrayEntries).byteLength).toBe(bytes)
    expect(Object.isFrozen(dtypeInfo(name))).toBe(true)
  })

  it('covers exactly the listed dtypes', () => {
    expect(dtypes).toHaveLength(17)
    for (const dtype of dtypes) expect(isDType(dtype)).toBe(true)
    for (const other of ['float', 'F32', '', 'toString', 1, null]) expect(isDType(other)).toBe(false)
    expect(() => dtypeInfo('float' as DType)).toThrow(/^dtypeInfo: dtype must be one of i8, .*, not 'float'$/)
  })

  it('has the codes of ncclDataType_t', () => {
    const codes = Object.fromEntries(dtypes.map((dtype) => [dtype, dtypeInfo(dtype).ncclCode]))
    expect(codes).toEqual({
      i8: 0,
      u8: 1,
      i32: 2,
      u32: 3,
      i64: 4,
      u64: 5,
      f16: 6,
      f32: 7,
      f64: 8,
      bf16: 9,
      f8e4m3: 10,
      f8e5m2: 11,
    })
  })

  it('agrees with nccl.h', ({ skip }) => {
    const folders = [process.env['NCCL_HOME'], process.env['CUDA_HOME'], '/usr', '/usr/local/cuda']
    const header = folders.flatMap((folder) => (folder ? [join(folder, 'include', 'nccl.h')] : [])).find(existsSync)
    if (header === undefined) return skip('no nccl.h to compare with: set NCCL_HOME')
    const text = readFileSync(header, 'utf8')
    const names = {
      ncclInt8: 'i8',
      ncclUint8: 'u8',
      ncclInt32: 'i32',
      ncclUint32: 'u32',
      ncclInt64: 'i64',
      ncclUint64: 'u64',
      ncclFloat16: 'f16',
      ncclFloat32: 'f32',
      ncclFloat64: 'f64',
      ncclBfloat16: 'bf16',
      ncclFloat8e4m3: 'f8e4m3',
      ncclFloat8e5m2: 'f8e5m2',
    } as const
    for (const [name, dtype] of Object.entries(names)) {
      expect(Number(new RegExp(`\\b${name}\\s*=\\s*(\\d+)`).exec(text)?.[1]), name).toBe(dtypeInfo(dtype).ncclCode)
    }
  })

  it('has the type names of NVSHMEM', () => {
    const names = Object.fromEntries(dtypes.map((dtype) => [dtype, dtypeInfo(dtype).nvshmemName]))
    expect(names).toEqual({
      i8: 'int8',
      u8: 'uint8',
      i16: 'int16',
      u16: 'uint16',
      i32: 'int32',
      u32: 'uint32',
      i64: 'int64',
      u64: 'uint64',
      f16: 'half',
      bf16: 'bfloat16',
      f32: 'float',
      f64: 'double',
    })
  })
})

describe('dtypeOf', () => {
  it('recognizes every typed array', () => {
    const arrays = { i8: Int8Array, u8: Uint8Array, i16: Int16Array, u16: Uint16Array, i32: Int32Array } as const
    const more = { u32: Uint32Array, f32: Float32Array, f64: Float64Array, i64: BigInt64Array, u64: BigUint64Array }
    for (const [dtype, typedArray] of Object.entries({ ...arrays, ...more })) {
      expect(dtypeOf(new typedArray(1))).toBe(dtype)
    }
    expect(dtypeOf(new Uint8ClampedArray(1))).toBe('u8')
  })

  it('recognizes subclasses and arrays of other realms', () => {
    expect(dtypeOf(Buffer.alloc(1))).toBe('u8')
    expect(dtypeOf(runInNewContext('new Float64Array(2)') as Float64Array)).toBe('f64')
    class Samples extends Float32Array {}
    expect(dtypeOf(new Samples(1))).toBe('f32')
  })

  it('recognizes Float16Array if the engine has it', ({ skip }) => {
    const { Float16Array } = globalThis as { Float16Array?: new (length: number) => ArrayBufferView }
    if (Float16Array === undefined) return skip(`Node ${process.version} has no Float16Array`)
    expect(dtypeOf(new Float16Array(1))).toBe('f16')
  })

  it('refuses other values, including forged arrays', () => {
    const tagged = { [Symbol.toStringTag]: 'Float32Array', length: 1 }
    for (const value of [new DataView(new ArrayBuffer(8)), new ArrayBuffer(8), [1], tagged, null, undefined, 'f32']) {
      expect(() => dtypeOf(value as unknown as ArrayBufferView)).toThrow(TypeError)
    }
  })
})

describe('encodeArray and decodeArray', () => {
  it('are inverse for every dtype', () => {
    const values = {
      i8: [-128, 0, 127],
      u8: [0, 255],
      i16: [-32768, 32767],
      u16: [0, 65535],
      i32: [-2147483648, 2147483647],
      u32: [0, 4294967295],
      f16: [1.5, -0, 65504],
      bf16: [1.5, 2 ** 100],
      f8e4m3: [448, -1.75],
      f8e5m2: [57344, -1.75],
      f32: [1.5, -0],
      f64: [0.1, Number.MAX_VALUE],
      complex64: [1, 2, 3, 4],
      complex128: [0.1, 0.2],
    } as const
    for (const [name, list] of Object.entries(values)) {
      const dtype = name as keyof typeof values
      const bits = encodeArray(dtype, list as ArrayLike<number>)
      expect(bits).toBeInstanceOf(dtypeInfo(dtype).typedArray)
      expect(Array.from(decodeArray(dtype, bits)), dtype).toEqual([...list])
    }
    expect(Array.from(encodeArray('i64', [-(2n ** 63n), 5, -1n]))).toEqual([-(2n ** 63n), 5n, -1n])
    expect(Array.from(encodeArray('u64', [2n ** 64n - 1n]))).toEqual([2n ** 64n - 1n])
    expect(Array.from(encodeArray('bool', [true, false, 2, 0, -0]))).toEqual([1, 0, 1, 0, 0])
  })

  it('refuse integers that do not fit', () => {
    for (const [dtype, value] of [
      ['i8', 128],
      ['u8', -1],
      ['u8', 1.5],
      ['i16', 40000],
      ['u32', 2 ** 32],
      ['i32', Number.NaN],
      ['i32', Number.POSITIVE_INFINITY],
    ] as const) {
      expect(() => encodeArray(dtype, [0, value]), `${dtype} ${value}`).toThrow(
        `encodeArray: values[1] must be an integer that fits ${dtype}, not ${value}`,
      )
    }
    expect(() => encodeArray('i64', [2n ** 63n])).toThrow(RangeError)
    expect(() => encodeArray('u64', [-1n])).toThrow(RangeError)
    expect(() => encodeArray('u64', [2 ** 53])).toThrow(TypeError)
  })

  it('refuse values of the wrong type', () => {
    expect(() => encodeArray('f32', ['1'] as unknown as number[])).toThrow(
      "encodeArray: values[0] must be a number, not '1'",
    )
    expect(() => encodeArray('f16', [1n] as unknown as number[])).toThrow(TypeError)
    expect(() => encodeArray('i32', [null] as unknown as number[])).toThrow(TypeError)
    expect(() => encodeArray('bool', [Number.NaN])).toThrow(TypeError)
    expect(() => encodeArray('f32', 5 as unknown as number[])).toThrow(TypeError)
    expect(() => encodeArray('complex64', [1, 2, 3])).toThrow('pairs')
    expect(() => encodeArray('f16', [1], { saturates: true } as never)).toThrow('saturates')
    expect(() => encodeArray('f16', [1], { saturate: 1 } as never)).toThrow(TypeError)
  })

  it('refuse to decode an array of another type', () => {
    expect(() => decodeArray('f16', new Uint8Array(2) as unknown as Uint16Array)).toThrow(
      'decodeArray: bits must be a Uint16Array that holds f16, not an object of class Uint8Array',
    )
    expect(() => decodeArray('f16', new Float32Array(2) as unknown as Uint16Array)).toThrow(TypeError)
    expect(() => decodeArray('i16', new Uint16Array(2) as unknown as Int16Array)).toThrow(TypeError)
    expect(() => decodeArray('complex64', new Float64Array(2) as unknown as Float32Array)).toThrow(TypeError)
    expect(() => decodeArray('f32', [1] as unknown as Float32Array)).toThrow(TypeError)
  })

  it('always copy', () => {
    const values = Float32Array.of(1, 2)
    const encoded = encodeArray('f32', values)
    values[0] = 9
    expect(encoded[0]).toBe(1)
    const decoded = decodeArray('f32', encoded)
    encoded[0] = 9
    expect(decoded[0]).toBe(1)
  })

  it('accept typed arrays, buffers and empty input', () => {
    expect(Array.from(encodeArray('f16', Float64Array.of(1, 2)))).toEqual([0x3c00, 0x4000])
    expect(encodeArray('i64', [])).toHaveLength(0)
    expect(Array.from(decodeArray('f8e4m3', Buffer.from([0x38])))).toEqual([1])
  })

  it('are typed by dtype (checked by tsc)', () => {
    expectTypeOf(encodeArray('bf16', [1])).toEqualTypeOf<Uint16Array<ArrayBuffer>>()
    expectTypeOf(decodeArray('bf16', new Uint16Array(1))).toEqualTypeOf<Float32Array<ArrayBuffer>>()
    expectTypeOf<TypedArrayOf<'i64'>>().toEqualTypeOf<BigInt64Array>()
    expectTypeOf<DecodedArrayOf<'f64'>>().toEqualTypeOf<Float64Array<ArrayBuffer>>()
    expectTypeOf<OwnedArrayOf<'i64'>>().toEqualTypeOf<BigInt64Array<ArrayBuffer>>()
  })
})
