import {
  type DType,
  dtypeInfo,
  type ElementLayout,
  type ElementType,
  elementLayout,
  type OwnedArrayOf,
  type StorageArrayConstructor,
  type StructType,
  type TypedArrayOf,
} from '@shoal/types'

/** The typed array that holds elements on the host: bits for the types JavaScript has not, bytes for structs. */
export type HostArrayOf<E extends ElementType> = E extends DType ? TypedArrayOf<E> : Uint8Array

/** The size of an element type, checked before. */
export function bytesOfElement(type: ElementType): number {
  return typeof type === 'string' ? dtypeInfo(type).bytes : type.bytes
}

/** An element type, checked. @throws TypeError for what is none */
export function requireElementType(type: ElementType, api: string, name = 'dtype'): ElementLayout {
  return elementLayout(type, api, name)
}

/** What messages call an element type. */
export function nameOfType(type: ElementType): string {
  return typeof type === 'string' ? type : type.name
}

/** The typed array that holds elements of a type, and its entries for one element. */
export function storageOf(type: ElementType): {
  readonly typedArray: StorageArrayConstructor<DType>
  readonly arrayEntries: number
} {
  if (typeof type === 'string') return dtypeInfo(type) as never
  return { typedArray: Uint8Array as StorageArrayConstructor<DType>, arrayEntries: type.bytes }
}

/** A fresh typed array for `length` elements. */
export function arrayFor<E extends ElementType>(type: E, length: number): OwnedArrayOf<DType> {
  const { typedArray, arrayEntries } = storageOf(type)
  return new typedArray(length * arrayEntries)
}

/** The type of a struct's elements: messages and the memory protocol treat them apart. */
export function structOf(type: ElementType): StructType | undefined {
  return typeof type === 'string' ? undefined : type
}
