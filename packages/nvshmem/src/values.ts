import {
  type DType,
  decodeArray,
  dtypeInfo,
  encodeArray,
  type HostValueOf,
  type StorageArray,
  type TypedArrayOf,
} from '@shoal/types'

/** One element in JavaScript: a bigint for 64-bit integers, or a number for other types. */
export type ElementOf<D extends DType> = D extends 'i64' | 'u64' ? bigint : number

/** Accepted input for an element: 64-bit integers also as safe integers. */
export type ElementValue<D extends DType> = HostValueOf<D>

const mostSigned64 = 1n << 63n

/** Converts an element for C: a number or bigint, or the bits of a half. @throws TypeError, RangeError */
export function toNative(dtype: DType, value: unknown, api: string, parameter: string): number | bigint {
  // These need no conversion; the function of the sys package checks their range.
  if (typeof value === 'bigint' && value >= 0n && value < mostSigned64 && (dtype === 'u64' || dtype === 'i64'))
    return value
  if (typeof value === 'number' && (dtype === 'f64' || (dtype === 'i32' && (value | 0) === value))) return value
  return elementsOf(dtype, [value], api, parameter)[0] as number | bigint
}

/** Converts the entries of one element for C. @throws TypeError, RangeError that name the parameter */
export function elementsOf(dtype: DType, entries: readonly unknown[], api: string, parameter: string): StorageArray {
  try {
    return encodeArray(dtype, entries as HostValueOf<DType>[]) as StorageArray
  } catch (error) {
    if (error instanceof Error) error.message = error.message.replace('encodeArray: values[0]', `${api}: ${parameter}`)
    throw error
  }
}

/** Converts an element that C returned. */
export function fromNative(dtype: DType, value: unknown): number | bigint {
  if (dtype !== 'f16' && dtype !== 'bf16') return value as number | bigint
  const { typedArray } = dtypeInfo(dtype)
  const bits = new typedArray(1)
  bits[0] = Number(value)
  return decodeArray(dtype, bits as TypedArrayOf<'f16' | 'bf16'>)[0] as number
}
