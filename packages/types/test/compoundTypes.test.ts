import {
  type CompoundInputOf,
  defineArray,
  defineStruct,
  defineTuple,
  type ElementArrayOf,
  type ElementInputOf,
  elementLayout,
  type FieldType,
  isCompoundType,
} from '@shoal/types'
import { describe, expect, expectTypeOf, test } from 'vitest'

const random = (end: number): number => Math.floor(Math.random() * end)
const scalars = ['i8', 'u16', 'i32', 'u64', 'f16', 'f32', 'f64', 'bool', 'ptr', 'complex64'] as const

/** Returns a random type and a value of it. */
function typeAndValue(depth: number): { readonly type: FieldType; readonly value: unknown } {
  const kind = depth === 0 ? 0 : random(6)
  if (kind < 3) {
    const type = scalars[random(scalars.length)] as (typeof scalars)[number]
    const numeric =
      type === 'bool' ? random(2) === 1 : type === 'complex64' ? { re: random(9), im: -random(9) } : random(100)
    return { type, value: type === 'u64' || type === 'ptr' ? BigInt(numeric as number) : numeric }
  }
  const parts = Array.from({ length: 1 + random(4) }, () => typeAndValue(depth - 1))
  const [first] = parts as [(typeof parts)[number]]
  const count = 1 + random(4)
  const repeated = Array.from({ length: count }, () => first.value)
  if (kind === 3) return { type: [first.type, count], value: repeated }
  if (kind === 4) return { type: defineArray(first.type, count), value: repeated }
  return { type: defineTuple(parts.map(({ type }) => type)), value: parts.map(({ value }) => value) }
}

describe('a tuple type', () => {
  test('is laid out, written and read like a struct with the same fields', () => {
    for (let round = 0; round < 300; round += 1) {
      const parts = Array.from({ length: 1 + random(6) }, () => typeAndValue(3))
      const tuple = defineTuple(parts.map(({ type }) => type))
      const fields = Object.fromEntries(parts.map(({ type }, index) => [`f${index}`, type]))
      const struct = defineStruct('Same', fields)
      expect([tuple.bytes, tuple.alignment]).toEqual([struct.bytes, struct.alignment])
      const values = parts.map(({ value }) => value)
      const bytes = tuple.encode(values as never)
      expect(bytes).toEqual(
        struct.encode(Object.fromEntries(values.map((value, index) => [`f${index}`, value])) as never),
      )
      expect(tuple.read(bytes)).toEqual(values)
      expect(tuple.decode(tuple.encodeArray([values, values] as never))).toEqual([values, values])
    }
  })

  test('keeps its element types, and has a name', () => {
    const Point = defineStruct('Point', { x: 'f32', y: 'f32' })
    const types = ['u8', Point, ['i16', 2]] as const
    const tuple = defineTuple(types)
    expect([tuple.kind, tuple.name, tuple.types]).toEqual(['tuple', '[u8, Point, i16[2]]', types])
    expect(Object.isFrozen(tuple.types)).toBe(true)
    expect(defineTuple(['ptr', defineArray('f32', 3)]).name).toBe('[ptr, f32[3]]')
  })

  test('names the wrong part in its errors', () => {
    const Entry = defineTuple(['u8', ['i16', 2]])
    expect(() => Entry.encode([256, [0, 0]])).toThrow(
      new RangeError('[u8, i16[2]][0] must be an integer from 0 to 255, not 256'),
    )
    expect(() => Entry.encode([0, [0, 'x' as never]])).toThrow("[u8, i16[2]][1][1] must be a number, not 'x'")
    expect(() => Entry.encode([0] as never)).toThrow(new RangeError('[u8, i16[2]] must be an array of 2, not of 1'))
    expect(() => Entry.encode(null as never)).toThrow(new TypeError('[u8, i16[2]] must be an array of 2, not null'))
    expect(() => Entry.decode(new Uint8Array(7))).toThrow(
      '[u8, i16[2]].decode: source must be a multiple of 6 bytes long',
    )
    const Holder = defineStruct('Holder', { entry: Entry })
    expect(() => Holder.encode({ entry: [0, [0, 70_000]] })).toThrow(
      'Holder.entry[1][1] must be an integer from -32768',
    )
  })
})

describe('an array type', () => {
  test('writes and reads JavaScript arrays, also nested, and accepts typed arrays', () => {
    const Row = defineArray('f32', 3)
    const Matrix = defineArray(Row, 2)
    expect([Row.kind, Row.name, Row.element, Row.count]).toEqual(['array', 'f32[3]', 'f32', 3])
    expect([Matrix.name, Matrix.bytes, Matrix.alignment]).toEqual(['f32[3][2]', 24, 4])
    const bytes = Matrix.encode([Float32Array.of(1, 2, 3), [4, 5, 6]])
    expect([...new Float32Array(bytes.buffer)]).toEqual([1, 2, 3, 4, 5, 6])
    expect(Matrix.read(bytes)).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ])
  })

  test('refuses arrays of another length or type', () => {
    const Row = defineArray('u8', 3)
    expect(() => Row.encode([1, 2])).toThrow(new RangeError('u8[3] must be an array of 3, not of 2'))
    expect(() => Row.encode([1, 2, 3.5])).toThrow(new TypeError('u8[3][2] must be an integer, not 3.5'))
    expect(() => Row.encode(5 as never)).toThrow(new TypeError('u8[3] must be an array of 3, not 5'))
  })
})

test.each([
  [() => defineArray('f33' as never, 3), /^defineArray: type must be a dtype, 'ptr', .*, not 'f33'$/],
  [() => defineArray('f32', 1.5), /^defineArray: count must be an integer from 1 to .*, not 1.5$/],
  [() => defineArray('f32', undefined as never), /^defineArray: count must be an integer from 1 to .*, not undefined$/],
  [() => defineTuple([]), /^defineTuple: types must be an array of at least one type, such as \['u32', 'f64'\], not /],
  [() => defineTuple('f32' as never), /^defineTuple: types must be an array .*, not 'f32'$/],
  [() => defineTuple(['f32', null as never]), /^defineTuple: types\[1\] must be a dtype, .*, not null$/],
] as const)('defineArray and defineTuple refuse %s', (make, message) => {
  expect(make).toThrow(TypeError)
  expect(make).toThrow(message)
})

test('defineArray refuses a count below 1', () => {
  expect(() => defineArray('f32', 0)).toThrow(RangeError)
})

test('an array inside a type that contains itself is refused', () => {
  const cyclic: unknown[] = []
  cyclic.push(cyclic, 2)
  expect(() => defineArray(cyclic as never, 2)).toThrow(/^defineArray: type must have arrays at most 32 deep/)
})

test('compound types are element types', () => {
  for (const type of [defineArray('f32', 3), defineTuple(['u8', 'f64']), defineStruct('S', { x: 'u8' })]) {
    expect([isCompoundType(type), elementLayout(type)]).toEqual([true, type])
  }
  for (const other of [{ kind: 'array' }, ['f32', 3], null, 'f32']) expect(isCompoundType(other)).toBe(false)
  expect(() => elementLayout(['f32', 3] as never)).toThrow('or a type of defineStruct, defineArray or defineTuple')
})

test('values of compound types are typed (checked by tsc)', () => {
  const Row = defineArray('f32', 3)
  const Entry = defineTuple(['u64', Row, 'bool'])
  const Holder = defineStruct('Holder', { entry: Entry, rows: [Row, 2] })
  expectTypeOf<ElementArrayOf<typeof Row>>().toEqualTypeOf<number[][]>()
  expectTypeOf<ElementArrayOf<typeof Entry>>().toEqualTypeOf<[bigint, number[], boolean][]>()
  expectTypeOf<ElementArrayOf<typeof Holder>>().toEqualTypeOf<
    { entry: [bigint, number[], boolean]; rows: number[][] }[]
  >()
  expectTypeOf<CompoundInputOf<typeof Entry>>().toEqualTypeOf<readonly [bigint | number, ArrayLike<number>, boolean]>()
  expectTypeOf<ElementInputOf<typeof Row>>().toEqualTypeOf<ArrayLike<ArrayLike<number>>>()
  // @ts-expect-error This type does not exist.
  expect(() => defineTuple(['f33'])).toThrow(TypeError)
  // @ts-expect-error A part is missing.
  expect(() => Entry.encode([1n, [1, 2, 3]])).toThrow(RangeError)
})
