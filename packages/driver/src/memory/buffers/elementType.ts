import {
  type DType,
  dtypeInfo,
  dtypes,
  type ElementLayout,
  type ElementType,
  elementLayout,
  type OwnedArrayOf,
  requireInteger,
  type StorageArrayConstructor,
  type TypedArrayOf,
} from '@shoal/types'

/** The typed array that holds elements on the host: bits for the types JavaScript has not, bytes for structs. */
export type HostArrayOf<E extends ElementType> = E extends DType ? TypedArrayOf<E> : Uint8Array

/**
 * What is known of each dtype, without a call: buffers are made and sliced all the time. Of an object that is made
 * without a prototype V8 looks each name up in a dictionary.
 */
const infos: { readonly [dtype: string]: ElementLayout | undefined } = Object.setPrototypeOf(
  Object.fromEntries(dtypes.map((dtype) => [dtype, dtypeInfo(dtype)])),
  null,
)

/** The size of an element type, checked before. */
export function bytesOfElement(type: ElementType): number {
  return typeof type === 'string' ? (infos[type] as ElementLayout).bytes : type.bytes
}

/** An element type, checked. @throws TypeError for what is none */
export function requireElementType(type: ElementType, api: string, name = 'dtype'): ElementLayout {
  const known = typeof type === 'string' ? infos[type] : undefined
  return known ?? elementLayout(type, api, name)
}

/**
 * How many elements of a type a variable of some code has. @throws RangeError when its bytes are no whole number of
 * them
 */
export function elementsOfVariable(name: string, byteLength: number, type: ElementLayout, api: string): number {
  if (byteLength % type.bytes === 0) return byteLength / type.bytes
  throw new RangeError(`${api}: dtype must fit ${name}, whose ${byteLength} bytes are no whole number of ${type.name}`)
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

/** Bytes of so many elements. @throws TypeError, RangeError */
export function bytesFor(dtype: ElementType, length: number, api: string): number {
  const { bytes } = requireElementType(dtype, api)
  const byteLength = Number.isInteger(length) ? length * bytes : -1
  if (byteLength >= 0 && byteLength <= Number.MAX_SAFE_INTEGER) return byteLength
  return requireInteger(length, api, 'length', 0, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
}
