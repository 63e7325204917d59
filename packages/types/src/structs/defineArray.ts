import { isArray } from '../anyValue.js'
import { requireInteger, wrongType } from '../arguments/scalars.js'
import { isDType } from '../dtypes/dtype.js'
import { Compound, roundUp } from './compound.js'
import { arrayCodec, type FieldCodec, fieldCodec, tupleValues } from './fieldCodec.js'
import type { ArrayType, FieldType, TupleType } from './types.js'

/**
 * Defines an array of fixed length as an element type, such as `float[3]` in C.
 *
 * Its values are JavaScript arrays. Each call makes a new type, as with `defineStruct`.
 *
 * @example
 * const Point = defineArray('f32', 3)
 * const points = DeviceBuffer.from(device, [[0, 0, 1], [1, 2, 3]], { dtype: Point })
 *
 * @throws TypeError for an unknown type or a count that is not an integer; RangeError for a count below 1
 */
export function defineArray<const T extends FieldType, const N extends number>(type: T, count: N): ArrayType<T, N> {
  const api = 'defineArray'
  requireInteger(count, api, 'count', 1)
  fieldCodec(type, 'type', 0, api)
  const codec = arrayCodec([type, count], 'type', 0, api)
  const array = new Compound('array', `${nameOf(type)}[${count}]`, codec)
  return Object.assign(array, { element: type, count }) as unknown as ArrayType<T, N>
}

/**
 * Defines a tuple of several types as one element type.
 *
 * It is laid out as a struct with these fields. Its values are JavaScript arrays. Each call makes a new type, as with
 * `defineStruct`.
 *
 * @example
 * const Entry = defineTuple(['u32', 'f64'])
 * Entry.bytes // 16
 *
 * @throws TypeError for an unknown type or an empty list
 */
export function defineTuple<const T extends readonly FieldType[]>(types: T): TupleType<T> {
  if (!isArray(types) || types.length === 0) {
    throw wrongType('defineTuple', 'types', "an array of at least one type, such as ['u32', 'f64']", types)
  }
  const own = Object.freeze(Array.from(types))
  // Before the name, which requires checked types.
  const codec = tupleCodec(own)
  const tuple = new Compound('tuple', `[${own.map(nameOf).join(', ')}]`, codec)
  return Object.assign(tuple, { types: own }) as unknown as TupleType<T>
}

function tupleCodec(types: readonly FieldType[]): FieldCodec {
  let end = 0
  const parts = types.map((type, index) => {
    const codec = fieldCodec(type, `types[${index}]`, 0, 'defineTuple')
    const offset = roundUp(end, codec.alignment)
    end = offset + codec.bytes
    return { codec, offset }
  })
  const alignment = Math.max(...parts.map(({ codec }) => codec.alignment))
  return {
    bytes: roundUp(end, alignment),
    alignment,
    write(view, base, value, path) {
      const values = tupleValues(value, parts.length, path)
      for (const [index, { codec, offset }] of parts.entries()) {
        codec.write(view, base + offset, values[index], `${path}[${index}]`)
      }
    },
    read: (view, base) => parts.map(({ codec, offset }) => codec.read(view, base + offset)),
  }
}

/** Returns the name of a checked type for messages. */
function nameOf(type: FieldType): string {
  if (type === 'ptr' || isDType(type)) return type
  return isArray(type) ? `${nameOf(type[0])}[${type[1]}]` : (type as { readonly name: string }).name
}
