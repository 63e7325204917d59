import {
  type DType,
  defineStruct,
  type ElementArrayOf,
  type ElementInputOf,
  elementLayout,
  isCompoundType,
  type StructValue,
} from '@shoal/types'
import { describe, expect, expectTypeOf, it } from 'vitest'

const Vector = defineStruct('Vector', { x: 'f32', y: 'f32', z: 'f32' })
const Particle = defineStruct('Particle', {
  alive: 'bool',
  position: Vector,
  charge: 'i8',
  id: 'u64',
  next: 'ptr',
  weights: ['f16', 3],
  grid: [['i32', 2], 2],
  phase: 'complex128',
})

describe('defineStruct', () => {
  it('lays fields out as C does', () => {
    expect(Particle.fields.map(({ name, offset, bytes }) => [name, offset, bytes])).toEqual([
      ['alive', 0, 1],
      ['position', 4, 12],
      ['charge', 16, 1],
      ['id', 24, 8],
      ['next', 32, 8],
      ['weights', 40, 6],
      ['grid', 48, 16],
      ['phase', 64, 16],
    ])
    expect([Particle.bytes, Particle.alignment]).toEqual([80, 16])
  })

  it('respects a larger alignment', () => {
    const Float4 = defineStruct('Float4', { x: 'f32', y: 'f32', z: 'f32' }, { align: 16 })
    expect([Float4.bytes, Float4.alignment]).toEqual([16, 16])
    const holder = defineStruct('Holder', { a: 'u8', v: Float4 })
    expect(holder.fields[1]?.offset).toBe(16)
  })

  it('writes and reads every kind of field', () => {
    const value = {
      alive: true,
      position: { x: 1.5, y: -0.25, z: 1e10 },
      charge: -128,
      id: 2n ** 64n - 1n,
      next: 0x7fff_0000_1000n,
      weights: [1, -0.5, 65504],
      grid: [
        [1, 2],
        [-2147483648, 2147483647],
      ],
      phase: { re: 0.1, im: -0.2 },
    }
    const bytes = Particle.encode(value)
    expect(bytes.length).toBe(80)
    expect(Particle.read(bytes)).toEqual({ ...value, position: { x: 1.5, y: -0.25, z: Math.fround(1e10) } })
    expect(Particle.decode(bytes)).toHaveLength(1)
  })

  it('accepts typed arrays and safe integers', () => {
    const Kernel = defineStruct('Kernel', { taps: ['f32', 3], size: 'i64', bytes: ['u8', 2] })
    const bytes = Kernel.encode({ taps: Float32Array.of(1, 2, 3), size: -5, bytes: Buffer.from([7, 8]) })
    expect(Kernel.read(bytes)).toEqual({ taps: [1, 2, 3], size: -5n, bytes: [7, 8] })
  })

  it('writes at an offset into views and buffers and keeps the other bytes', () => {
    const memory = new Uint8Array(40).fill(0xaa)
    Vector.write(memory.subarray(4, 36), { x: 1, y: 2, z: 3 }, 8)
    expect(memory.indexOf(0xaa, 12)).toBe(24)
    expect(memory[11]).toBe(0xaa)
    expect(Vector.read(memory.buffer, 12)).toEqual({ x: 1, y: 2, z: 3 })
    expect(Vector.read(new SharedArrayBuffer(12))).toEqual({ x: 0, y: 0, z: 0 })
  })

  it('encodes several with zero padding and decodes them again', () => {
    const Padded = defineStruct('Padded', { tag: 'u8', value: 'f64' })
    const bytes = Padded.encode({ tag: 1, value: 2 }, { tag: 3, value: 4 })
    expect(bytes.length).toBe(32)
    expect(Array.from(bytes.subarray(1, 8))).toEqual([0, 0, 0, 0, 0, 0, 0])
    expect(Padded.decode(bytes)).toEqual([
      { tag: 1, value: 2 },
      { tag: 3, value: 4 },
    ])
    expect(() => Padded.decode(bytes.subarray(0, 31))).toThrow(RangeError)
  })

  it('rounds narrow floats and saturates the 8-bit ones', () => {
    const Narrow = defineStruct('Narrow', { half: 'f16', bfloat: 'bf16', small: 'f8e4m3', wide: 'f8e5m2' })
    const back = Narrow.read(Narrow.encode({ half: 1 / 3, bfloat: 1 / 3, small: 1e9, wide: -1e9 }))
    expect(back).toEqual({ half: 0.333251953125, bfloat: 0.333984375, small: 448, wide: -57344 })
  })

  it('is typed by its fields (checked by tsc)', () => {
    expectTypeOf<StructValue<{ a: 'u64'; b: ['f32', 2]; c: 'bool'; d: 'complex64' }>>().toEqualTypeOf<{
      a: bigint
      b: number[]
      c: boolean
      d: { readonly re: number; readonly im: number }
    }>()
    const value = Particle.read(new Uint8Array(80))
    expectTypeOf(value.position.x).toEqualTypeOf<number>()
    expectTypeOf(value.next).toEqualTypeOf<bigint>()
    expectTypeOf(value.grid).toEqualTypeOf<number[][]>()
  })
})

describe('structs as elements', () => {
  it('have a name, a size and an alignment, as dtypes do', () => {
    expect(elementLayout('f64')).toMatchObject({ name: 'f64', bytes: 8, alignment: 8 })
    expect(elementLayout('bool')).toMatchObject({ name: 'bool', bytes: 1, alignment: 1 })
    expect(elementLayout(Particle)).toMatchObject({ name: 'Particle', bytes: 80, alignment: 16 })
  })

  it('are distinguished from all other values', () => {
    expect(isCompoundType(Vector)).toBe(true)
    for (const other of ['f32', undefined, null, {}, { kind: 'struct' }, Vector.fields]) {
      expect(isCompoundType(other)).toBe(false)
      if (other === 'f32') continue
      expect(() => elementLayout(other as DType, 'DeviceBuffer.allocate')).toThrow(
        /^DeviceBuffer\.allocate: element must be one of i8, .*, or a type of defineStruct, defineArray or defineTuple, not /,
      )
    }
  })

  it('are encoded from a list of any length', () => {
    const values = Array.from({ length: 200_000 }, (_, index) => ({ x: index, y: -index, z: 0.5 }))
    const bytes = Vector.encodeArray(values)
    expect(bytes.length).toBe(200_000 * 12)
    expect(Vector.read(bytes, 199_999 * 12)).toEqual(values[199_999])
    expect(Vector.decode(bytes)).toEqual(values)
    expect(() => Vector.encodeArray(5 as never)).toThrow('Vector.encodeArray: values must be an array, not 5')
    expect(() => Vector.encodeArray([values[0], {}] as never)).toThrow('Vector.x is missing')
  })

  it('are typed for writing and reading (checked by tsc)', () => {
    expectTypeOf<ElementArrayOf<'f32'>>().toEqualTypeOf<Float32Array<ArrayBuffer>>()
    expectTypeOf<ElementArrayOf<typeof Vector>>().toEqualTypeOf<{ x: number; y: number; z: number }[]>()
    expectTypeOf<{ readonly x: number; readonly y: number; readonly z: number }[]>().toExtend<
      ElementInputOf<typeof Vector>
    >()
  })
})

describe('struct refusals', () => {
  const Small = defineStruct('Small', { a: 'u8', b: 'i64', list: ['f32', 2], inner: Vector })
  const good = { a: 1, b: 1n, list: [1, 2], inner: { x: 0, y: 0, z: 0 } }

  it.each([
    [{ ...good, a: 256 }, RangeError, 'Small.a must be an integer from 0 to 255, not 256'],
    [{ ...good, a: 1.5 }, TypeError, 'Small.a'],
    [{ ...good, a: Number.NaN }, RangeError, 'Small.a'],
    [{ ...good, a: '1' }, TypeError, "Small.a must be a number, not '1'"],
    [{ ...good, b: 2n ** 63n }, RangeError, 'Small.b'],
    [{ ...good, b: 2 ** 60 }, TypeError, 'Small.b must be a bigint or safe integer'],
    [{ ...good, list: [1] }, RangeError, 'Small.list must be an array of 2, not of 1'],
    [{ ...good, list: [1, null] }, TypeError, 'Small.list[1] must be a number, not null'],
    [{ ...good, list: 5 }, TypeError, 'Small.list must be an array of 2, not 5'],
    [{ ...good, inner: { x: 0, y: 0 } }, TypeError, 'Small.inner.z is missing'],
    [{ ...good, inner: null }, TypeError, 'Small.inner must be an object with its fields, not null'],
    [{ ...good, extra: 1 }, TypeError, "Small must have only the fields of Small, not 'extra'"],
    [{ a: 1 }, TypeError, 'Small.b is missing'],
    [null, TypeError, 'Small must be an object with its fields, not null'],
  ])('%o', (value, errorClass, message) => {
    expect(() => Small.encode(value as unknown as typeof good)).toThrow(errorClass)
    expect(() => Small.encode(value as unknown as typeof good)).toThrow(message)
  })

  it('name the field at which the memory ends', () => {
    for (const offset of [-1, 1, 0.5, Number.NaN, 2 ** 60]) {
      expect(() => Vector.read(new Uint8Array(12), offset)).toThrow(RangeError)
      expect(() => Vector.write(new Uint8Array(12), { x: 0, y: 0, z: 0 }, offset)).toThrow(RangeError)
    }
    expect(() => Vector.read([] as unknown as Uint8Array)).toThrow(TypeError)
  })

  it('cover definitions that are not C structs', () => {
    expect(() => defineStruct('Empty', {})).toThrow('Empty has no fields')
    const cyclic: unknown[] = []
    cyclic.push(cyclic, 2)
    expect(() => defineStruct('S', { a: cyclic as never })).toThrow(
      new TypeError('defineStruct: fields.a must have arrays at most 32 deep, and none that contains itself'),
    )
    expect(() => defineStruct('1st', { a: 'u8' })).toThrow('C identifier')
    expect(() => defineStruct('S', { '0': 'u8' })).toThrow('C identifier')
    expect(() => defineStruct('S', { a: 'float' as 'f32' })).toThrow('defineStruct: fields.a must be a dtype')
    expect(() => defineStruct('S', { a: { kind: 'struct' } as never })).toThrow(
      'defineStruct: fields.a must be a dtype',
    )
    for (const count of [0, -1, 1.5, Number.NaN]) {
      expect(() => defineStruct('S', { a: ['f32', count] })).toThrow('count from 1')
    }
    expect(() => defineStruct('S', 5 as never)).toThrow('defineStruct: fields must be a plain object')
    expect(() => defineStruct('S', { a: 'u8' }, { alignment: 8 } as never)).toThrow(
      "only the keys align, not 'alignment'",
    )
    for (const align of [0, 3, -4, 8192, 1.5]) {
      expect(() => defineStruct('S', { a: 'u8' }, { align })).toThrow('power of two')
    }
  })
})
