import { wrongType } from '../arguments/scalars.js'
import { type DType, dtypeInfo, dtypes, isDType, type OwnedArrayOf, type TypedArrayOf } from '../dtypes/dtype.js'
import { isStructType } from './fieldCodec.js'
import type { StructInput, StructType, StructValue } from './types.js'

/** What memory may have as elements: a dtype by its name, or a struct made with `defineStruct`. */
export type ElementType = DType | StructType

/** What is the same for both: a name for messages, and size and alignment of one element in bytes. */
export interface ElementLayout {
  /** Its name for people. */
  readonly name: string
  /** Bytes of one element. */
  readonly bytes: number
  /** In bytes. */
  readonly alignment: number
}

/** Elements read from memory: a typed array for a dtype, an array of objects for a struct. */
export type ElementArrayOf<E extends ElementType> = E extends DType
  ? OwnedArrayOf<E>
  : E extends StructType<infer F>
    ? StructValue<F>[]
    : never

/** Elements to be written to memory: a typed array for a dtype, an array of objects for a struct. */
export type ElementInputOf<E extends ElementType> = E extends DType
  ? TypedArrayOf<E>
  : E extends StructType<infer F>
    ? ArrayLike<StructInput<F>>
    : never

/**
 * Size and alignment of an element type.
 *
 * @throws TypeError when `element` is neither the name of a dtype nor a struct
 */
export function elementLayout(element: ElementType, api = 'elementLayout', name = 'element'): ElementLayout {
  if (isDType(element)) return dtypeInfo(element)
  if (isStructType(element)) return element
  throw wrongType(api, name, `one of ${dtypes.join(', ')}, or a struct of defineStruct`, element)
}
