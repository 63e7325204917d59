import {
  type DType,
  type DTypeInfo,
  dtypeInfo,
  dtypes,
  isDType,
  type OwnedArrayOf,
  type StorageArray,
  type StorageArrayConstructor,
  type StructInput,
  type StructType,
  type StructValue,
  type TypedArrayOf,
  wrongType,
} from '@shoal/types'

/** The type of the elements of memory: a dtype, or a struct of the program's own, made by `defineStruct`. */
export type ElementType = DType | StructType

/** How elements lie in memory, and what holds them on the host. */
export interface ElementLayout {
  readonly name: string
  /** Bytes of one element. */
  readonly bytes: number
  readonly alignment: number
  /** The typed array that holds elements. */
  readonly typedArray: StorageArrayConstructor<DType>
  /** Its entries for one element: 2 for complex numbers, the bytes of a struct. */
  readonly arrayEntries: number
}

/** The typed array that holds elements on the host: bits for the types JavaScript has not, bytes for structs. */
export type HostArrayOf<E extends ElementType> = E extends DType ? TypedArrayOf<E> : Uint8Array

/** What `toArray` gives: a typed array over an `ArrayBuffer` of its own, or the values of structs. */
export type ElementsOf<E extends ElementType> = E extends DType
  ? OwnedArrayOf<E>
  : E extends StructType<infer F>
    ? StructValue<F>[]
    : never

/** Values that elements can be made from besides arrays that hold them: objects, for structs. */
export type ValuesOf<E extends ElementType> = E extends StructType<infer F> ? readonly StructInput<F>[] : never

const layouts = new WeakMap<StructType, ElementLayout>()

/** Whether elements are structs. */
export function isStruct(type: unknown): type is StructType {
  return typeof type === 'object' && type !== null && (type as { kind?: unknown }).kind === 'struct' && 'encode' in type
}

/** The layout of a type that was checked before. */
export function layoutOf(type: ElementType): ElementLayout {
  if (typeof type === 'string') return dtypeInfo(type) as DTypeInfo as ElementLayout
  let layout = layouts.get(type)
  if (layout === undefined) {
    const { name, bytes, alignment } = type
    layout = { name, bytes, alignment, typedArray: Uint8Array as StorageArrayConstructor<DType>, arrayEntries: bytes }
    layouts.set(type, layout)
  }
  return layout
}

/** The layout of an element type. @throws TypeError for what is none */
export function requireElementType(type: unknown, api: string, name = 'dtype'): ElementLayout {
  if (isDType(type) || isStruct(type)) return layoutOf(type)
  throw wrongType(api, name, `one of ${dtypes.join(', ')}, or a struct made by defineStruct()`, type)
}

/** What messages call it. */
export function nameOfType(type: ElementType): string {
  return typeof type === 'string' ? type : type.name
}

/** A fresh typed array for `length` elements. */
export function arrayFor(type: ElementType, length: number): StorageArray {
  const { typedArray, arrayEntries } = layoutOf(type)
  return new typedArray(length * arrayEntries)
}
