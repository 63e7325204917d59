import { wrongType } from '../arguments/scalars.js'
import { type DType, dtypeInfo, dtypes, isDType, type OwnedArrayOf, type TypedArrayOf } from '../dtypes/dtype.js'
import { isCompoundType } from './fieldCodec.js'
import type {
  ArrayType,
  CompoundType,
  FieldInput,
  FieldValue,
  StructInput,
  StructType,
  StructValue,
  TupleInput,
  TupleType,
  TupleValue,
} from './types.js'

/** Element type of memory: a dtype's name or a type of `defineStruct`, `defineArray` or `defineTuple`. */
export type ElementType = DType | CompoundType

/** One element as read: an object for a struct, an array for an array or a tuple. */
export type CompoundValueOf<E> =
  E extends StructType<infer F>
    ? StructValue<F>
    : E extends ArrayType<infer T, number>
      ? FieldValue<T>[]
      : E extends TupleType<infer L>
        ? TupleValue<L>
        : unknown

/** One element as it may be written. */
export type CompoundInputOf<E> =
  E extends StructType<infer F>
    ? StructInput<F>
    : E extends ArrayType<infer T, number>
      ? ArrayLike<FieldInput<T>>
      : E extends TupleType<infer L>
        ? TupleInput<L>
        : unknown

/** Name, size and alignment of a dtype or a compound type. */
export interface ElementLayout {
  /** Name of the type, for messages. */
  readonly name: string
  /** Bytes of one element. */
  readonly bytes: number
  /** In bytes. */
  readonly alignment: number
}

/** Elements read from memory: a typed array for a dtype, else a list of objects or arrays. */
export type ElementArrayOf<E extends ElementType> = E extends DType ? OwnedArrayOf<E> : CompoundValueOf<E>[]

/** Elements to write to memory: a typed array for a dtype, else a list of objects or arrays. */
export type ElementInputOf<E extends ElementType> = E extends DType ? TypedArrayOf<E> : ArrayLike<CompoundInputOf<E>>

/**
 * Returns size and alignment of an element type.
 *
 * @throws TypeError when `element` is neither the name of a dtype nor a type of `defineStruct`, `defineArray` or
 * `defineTuple`
 */
export function elementLayout(element: ElementType, api = 'elementLayout', name = 'element'): ElementLayout {
  if (isDType(element)) return dtypeInfo(element)
  if (isCompoundType(element)) return element
  const expected = `one of ${dtypes.join(', ')}, or a type of defineStruct, defineArray or defineTuple`
  throw wrongType(api, name, expected, element)
}
