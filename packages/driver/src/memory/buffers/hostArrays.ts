import { type DType, dtypeOf, type ElementType, isDetached, outOfRange, wrongType } from '@shoal/types'
import { byteLengthOf } from '../../core/ranges/arrayBytes.js'
import { bytesOfElement, nameOfType, storageOf } from './elementType.js'

/** The dtypes of typed arrays, by class name. */
interface ArrayDTypes {
  Int8Array: 'i8'
  Uint8Array: 'u8'
  Uint8ClampedArray: 'u8'
  Int16Array: 'i16'
  Uint16Array: 'u16'
  Int32Array: 'i32'
  Uint32Array: 'u32'
  BigInt64Array: 'i64'
  BigUint64Array: 'u64'
  Float16Array: 'f16'
  Float32Array: 'f32'
  Float64Array: 'f64'
}

/** The dtype of a typed array's class: `'f32'` for a `Float32Array`. */
export type DTypeOfArray<A> = A extends { readonly [Symbol.toStringTag]: infer N extends keyof ArrayDTypes }
  ? ArrayDTypes[N]
  : DType

/** The host representation of dtypes without a typed array. */
const heldAs: Partial<Record<DType, DType>> = {
  f16: 'u16',
  bf16: 'u16',
  f8e4m3: 'u8',
  f8e5m2: 'u8',
  bool: 'u8',
  complex64: 'f32',
  complex128: 'f64',
}

/**
 * Refuses values other than a typed array for these elements: bit patterns for types without a typed array, bytes for
 * structs.
 */
export function requireArrayFor(
  array: unknown,
  type: ElementType,
  api: string,
  name: string,
): asserts array is ArrayBufferView {
  if (ArrayBuffer.isView(array) && !(array instanceof DataView)) {
    const actual = dtypeOf(array)
    if (typeof type === 'string' ? actual === type || actual === heldAs[type] : actual === 'u8') return
  }
  throw wrongType(api, name, `a ${storageOf(type).typedArray.name} to hold ${nameOfType(type)}`, array)
}

/** Returns the number of elements in a typed array. @throws RangeError for a fraction of an element */
export function elementsIn(array: ArrayBufferView, type: ElementType, api: string, name: string): number {
  const bytes = bytesOfElement(type)
  const byteLength = byteLengthOf(array)
  if (byteLength === 0 && isDetached(array))
    throw wrongType(api, name, 'an array with a buffer', 'one whose buffer was detached')
  if (byteLength % bytes === 0) return byteLength / bytes
  throw outOfRange(api, name, `of whole elements of ${nameOfType(type)} (${bytes} bytes each)`, `${byteLength} bytes`)
}
