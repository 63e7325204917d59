import { type DType, describeValue, dtypeInfo, dtypeOf, type StorageArray } from '@shoal/types'

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

/** Refuses anything but a typed array that holds elements of `dtype`, bits for the types JavaScript has not. */
export function requireArrayFor(array: ArrayBufferView, dtype: DType, name: string): void {
  if (!ArrayBuffer.isView(array) || array instanceof DataView) {
    throw new TypeError(`${name} must be a typed array, not ${describeValue(array)}`)
  }
  const actual = dtypeOf(array)
  if (actual === dtype || actual === heldAs[dtype]) return
  const expected = dtypeInfo(dtype).typedArray.name
  throw new TypeError(`${name} must be a ${expected} to hold ${dtype}, not a ${array.constructor.name}`)
}

/** The number of elements of `dtype` in a typed array, or a RangeError when they are not whole. */
export function elementsIn(array: ArrayBufferView, dtype: DType, name: string): number {
  const { bytes } = dtypeInfo(dtype)
  if (array.byteLength % bytes !== 0) {
    throw new RangeError(`${name} has ${array.byteLength} bytes, not a whole number of ${dtype} (${bytes} bytes each)`)
  }
  return array.byteLength / bytes
}

/** A fresh typed array for `length` elements of `dtype`. */
export function arrayFor(dtype: DType, length: number): StorageArray {
  const info = dtypeInfo(dtype)
  return new info.typedArray(length * info.arrayEntries)
}

/** All bytes of a view. */
export function bytesOf(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
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
