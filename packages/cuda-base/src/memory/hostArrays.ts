import { type DType, dtypeOf, type ElementType, outOfRange, wrongType } from '@shoal/types'
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

/** Refuses anything but a typed array that holds such elements: bits for the types JavaScript has not, bytes for structs. */
export function requireArrayFor(
  array: unknown,
  type: ElementType,
  api: string,
  name: string,
): asserts array is ArrayBufferView {
  const { typedArray } = storageOf(type)
  const expected = `a ${typedArray.name} to hold ${nameOfType(type)}`
  if (!ArrayBuffer.isView(array) || array instanceof DataView) throw wrongType(api, name, expected, array)
  const actual = dtypeOf(array)
  if (typeof type === 'string' ? actual === type || actual === heldAs[type] : actual === 'u8') return
  throw wrongType(api, name, expected, array)
}

/** The number of such elements in a typed array. @throws RangeError when they are not whole */
export function elementsIn(array: ArrayBufferView, type: ElementType, api: string, name: string): number {
  const bytes = bytesOfElement(type)
  const byteLength = byteLengthOf(array)
  if (byteLength % bytes === 0) return byteLength / bytes
  throw outOfRange(api, name, `of whole elements of ${nameOfType(type)} (${bytes} bytes each)`, `${byteLength} bytes`)
}

const prototype = Object.getPrototypeOf(Uint8Array.prototype) as object
const getter = <T>(name: string) =>
  Object.getOwnPropertyDescriptor(prototype, name)?.get as (this: ArrayBufferView) => T
const getByteLength = getter<number>('byteLength')
const getByteOffset = getter<number>('byteOffset')
const getBuffer = getter<ArrayBufferLike>('buffer')

/**
 * The bytes a typed array really has. The getters of its class are asked, not the object: a subclass, a property of its own
 * or a proxy could say anything, and what C is told to copy must be there. @throws TypeError for a proxy
 */
export function byteLengthOf(array: ArrayBufferView): number {
  return getByteLength.call(array)
}

/** The `ArrayBuffer` behind a typed array, asked in the same way. */
export function bufferOf(array: ArrayBufferView): ArrayBufferLike {
  return getBuffer.call(array)
}

/** All bytes of a typed array. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(getBuffer.call(array), getByteOffset.call(array), getByteLength.call(array))
}

// About a millisecond of copying: longer would be felt as a stall of the event loop.
const sliceBytes = 8 * 1024 * 1024

/** Copies bytes without holding the event loop for long. */
export async function copyInSlices(target: Uint8Array, source: Uint8Array): Promise<void> {
  for (let start = 0; start < source.length; start += sliceBytes) {
    if (start > 0) await new Promise<void>((resolve) => setImmediate(resolve))
    target.set(source.subarray(start, start + sliceBytes), start)
  }
}
