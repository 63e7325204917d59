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

/** The host array for elements: bit patterns for types without a typed array, bytes for structs. */
export type HostArrayOf<E extends ElementType> = E extends DType ? TypedArrayOf<E> : Uint8Array

/**
 * Layouts of the dtypes without a call, because buffers are created and sliced often. The object has a prototype: V8
 * looks up names of an object without one in a dictionary.
 */
const infos: { readonly [dtype: string]: ElementLayout | undefined } = Object.setPrototypeOf(
  Object.fromEntries(dtypes.map((dtype) => [dtype, dtypeInfo(dtype)])),
  null,
)

/** Returns the size in bytes of a checked element type. */
export function bytesOfElement(type: ElementType): number {
  return typeof type === 'string' ? (infos[type] as ElementLayout).bytes : type.bytes
}

/** Returns the layout of a checked element type. @throws TypeError for other values */
export function requireElementType(type: ElementType, api: string, name = 'dtype'): ElementLayout {
  const known = typeof type === 'string' ? infos[type] : undefined
  return known ?? elementLayout(type, api, name)
}

/** Returns how many elements a variable of loaded code has. @throws RangeError when its bytes are not whole elements */
export function elementsOfVariable(name: string, byteLength: number, type: ElementLayout, api: string): number {
  if (byteLength % type.bytes === 0) return byteLength / type.bytes
  throw new RangeError(`${api}: dtype must fit ${name}, whose ${byteLength} bytes are no whole number of ${type.name}`)
}

/** Returns an element type's name for messages. */
export function nameOfType(type: ElementType): string {
  return typeof type === 'string' ? type : type.name
}

/** Returns the typed array class for elements of a type, and its entries per element. */
export function storageOf(type: ElementType): {
  readonly typedArray: StorageArrayConstructor<DType>
  readonly arrayEntries: number
} {
  if (typeof type === 'string') return dtypeInfo(type) as never
  return { typedArray: Uint8Array as StorageArrayConstructor<DType>, arrayEntries: type.bytes }
}

/** Creates a typed array for `length` elements. */
export function arrayFor<E extends ElementType>(type: E, length: number): OwnedArrayOf<DType> {
  const { typedArray, arrayEntries } = storageOf(type)
  return new typedArray(length * arrayEntries)
}

/** Returns the bytes of `length` elements. @throws TypeError, RangeError */
export function bytesFor(dtype: ElementType, length: number, api: string): number {
  const { bytes } = requireElementType(dtype, api)
  const byteLength = Number.isInteger(length) ? length * bytes : -1
  if (byteLength >= 0 && byteLength <= Number.MAX_SAFE_INTEGER) return byteLength
  return requireInteger(length, api, 'length', 0, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
}
