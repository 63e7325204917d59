import { type DType, dtypeOf, type ElementType, isDetached, outOfRange, wrongType } from '@shoal/types'
import { byteLengthOf } from '../../core/ranges/arrayBytes.js'
import { bytesOfElement, nameOfType, storageOf } from './elementType.js'

/** The dtypes of the typed arrays, by the name of their class. */
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

/** The dtype a typed array holds by its own class: `'f32'` for a `Float32Array`. */
export type DTypeOfArray<A> = A extends { readonly [Symbol.toStringTag]: infer N extends keyof ArrayDTypes }
  ? ArrayDTypes[N]
  : DType

/** How dtypes without a typed array of their own are held on the host. */
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
 * Refuses anything but a typed array that holds such elements: bits for the types JavaScript has not, bytes for
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

/** The number of such elements in a typed array. @throws RangeError when they are not whole */
export function elementsIn(array: ArrayBufferView, type: ElementType, api: string, name: string): number {
  const bytes = bytesOfElement(type)
  const byteLength = byteLengthOf(array)
  if (byteLength === 0 && isDetached(array))
    throw wrongType(api, name, 'an array with a buffer', 'one whose buffer was detached')
  if (byteLength % bytes === 0) return byteLength / bytes
  throw outOfRange(api, name, `of whole elements of ${nameOfType(type)} (${bytes} bytes each)`, `${byteLength} bytes`)
}
