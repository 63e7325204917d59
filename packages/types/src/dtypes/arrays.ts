import { outOfRange, requireArrayLike, wrongType } from '../arguments/scalars.js'
import {
  type DType,
  dtypeInfo,
  dtypeOf,
  isDetached,
  isDType,
  type OwnedArrayOf,
  type StorageArray,
  type TypedArrayOf,
} from './dtype.js'
import { decodeFloat, encodeFloat } from './floatFormat.js'
import { type EncodeOptions, floatFormats, type NarrowFloat, readSaturate } from './narrowFloats.js'

/** One entry of a host array: bigint for 64-bit integers, boolean for `bool`. */
export type HostValueOf<D extends DType> = D extends 'i64' | 'u64'
  ? bigint | number
  : D extends 'bool'
    ? boolean | number
    : number

/** Result of `decodeArray`: `Float32Array` for narrow floats, which it holds exactly, else the storage array. */
export type DecodedArrayOf<D extends DType> = D extends NarrowFloat ? OwnedArrayOf<'f32'> : OwnedArrayOf<D>

const api = 'encodeArray'

/**
 * Encodes host values as elements of a dtype.
 *
 * Floats are rounded to the nearest value, ties to even. Integers must fit. `bool` becomes 0 or 1. Complex values are
 * given as alternating real and imaginary parts.
 *
 * @throws RangeError when an integer does not fit, or a complex dtype gets an odd number of entries
 * @throws TypeError when an entry is of the wrong kind
 * @example
 * encodeArray('bf16', [1, 0.5]) // Uint16Array [0x3f80, 0x3f00]
 */
export function encodeArray<D extends DType>(
  dtype: D,
  values: ArrayLike<HostValueOf<D>>,
  options?: EncodeOptions,
): OwnedArrayOf<D> {
  const info = dtypeInfo(dtype, api)
  requireArrayLike(values, api, 'values')
  const saturate = readSaturate(options, dtype, api)
  if (isDetached(values as never))
    throw wrongType(api, 'values', 'an array with a buffer', 'an array whose buffer was detached')
  if (values.length % info.arrayEntries !== 0) {
    throw new RangeError(`${api}: values must be pairs of real and imaginary part, not ${values.length} entries`)
  }
  const out: StorageArray = new info.typedArray(values.length)
  encodeInto(dtype, values as ArrayLike<unknown>, out, saturate)
  return out as OwnedArrayOf<D>
}

/**
 * Decodes elements of a dtype to host values; always a copy.
 *
 * @example
 * decodeArray('bf16', Uint16Array.of(0x3f80, 0x3f00)) // Float32Array [1, 0.5]
 * @throws TypeError when `bits` is not the typed array that holds the dtype
 */
export function decodeArray<D extends DType>(dtype: D, bits: TypedArrayOf<D>): DecodedArrayOf<D> {
  const { typedArray } = dtypeInfo(dtype, 'decodeArray')
  const held = dtypeOf(bits, 'decodeArray', 'bits')
  if (dtypeInfo(held).kind !== storageKind(dtype) || bits.BYTES_PER_ELEMENT !== typedArray.BYTES_PER_ELEMENT) {
    throw wrongType('decodeArray', 'bits', `a ${typedArray.name} that holds ${dtype}`, bits)
  }
  if (isDetached(bits))
    throw wrongType('decodeArray', 'bits', 'an array with a buffer', 'an array whose buffer was detached')
  if (!isNarrowFloat(dtype)) return bits.slice() as DecodedArrayOf<D>
  const source = bits as Uint8Array | Uint16Array
  const values = decodedValues(dtype)
  const out = new Float32Array(source.length)
  for (let index = 0; index < source.length; index += 1) out[index] = values[source[index] as number] as number
  return out as DecodedArrayOf<D>
}

/** True for dtypes that typed arrays hold as bits. */
export function isNarrowFloat(dtype: DType): dtype is NarrowFloat {
  return isDType(dtype) && Object.hasOwn(floatFormats, dtype)
}

function storageKind(dtype: DType): string {
  const { kind } = dtypeInfo(dtype)
  if (kind === 'bool' || isNarrowFloat(dtype)) return 'uint'
  return kind === 'complex' ? 'float' : kind
}

const tables = new Map<NarrowFloat, Float32Array>()

/** Returns a table from bit pattern to value. */
function decodedValues(dtype: NarrowFloat): Float32Array {
  let values = tables.get(dtype)
  if (values === undefined) {
    const format = floatFormats[dtype]
    values = new Float32Array(2 << format.signShift).map((_, bits) => decodeFloat(format, bits))
    tables.set(dtype, values)
  }
  return values
}

function encodeInto(dtype: DType, values: ArrayLike<unknown>, out: StorageArray, saturate: boolean): void {
  const { kind } = dtypeInfo(dtype)
  if (isNarrowFloat(dtype)) {
    const format = floatFormats[dtype]
    for (let index = 0; index < values.length; index += 1) {
      out[index] = encodeFloat(format, numberAt(values, index), saturate)
    }
  } else if (kind === 'float' || kind === 'complex') {
    for (let index = 0; index < values.length; index += 1) out[index] = numberAt(values, index)
  } else if (kind === 'bool') {
    for (let index = 0; index < values.length; index += 1) out[index] = booleanAt(values, index) ? 1 : 0
  } else {
    encodeIntegers(dtype, values, out)
  }
}

function encodeIntegers(dtype: DType, values: ArrayLike<unknown>, out: StorageArray): void {
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index]
    if (out instanceof BigInt64Array || out instanceof BigUint64Array) {
      out[index] = bigintAt(values, index)
      if (out[index] !== BigInt(value as number)) throw doesNotFit(dtype, value, index)
    } else {
      out[index] = numberAt(values, index)
      // A different value was truncated or was not an integer. (-0 becomes 0, which compares equal.)
      if (out[index] !== value) throw doesNotFit(dtype, value, index)
    }
  }
}

function numberAt(values: ArrayLike<unknown>, index: number): number {
  const value = values[index]
  if (typeof value !== 'number') {
    throw wrongType(api, `values[${index}]`, 'a number', value)
  }
  return value
}

function bigintAt(values: ArrayLike<unknown>, index: number): bigint {
  const value = values[index]
  if (typeof value === 'bigint') return value
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  throw wrongType(api, `values[${index}]`, 'a bigint or a safe integer', value)
}

function booleanAt(values: ArrayLike<unknown>, index: number): boolean {
  const value = values[index]
  if (typeof value === 'boolean') return value
  if (typeof value === 'number' && !Number.isNaN(value)) return value !== 0
  throw wrongType(api, `values[${index}]`, 'a boolean or a number', value)
}

function doesNotFit(dtype: DType, value: unknown, index: number): Error {
  const isFraction = Number.isFinite(value) && !Number.isInteger(value)
  return (isFraction ? wrongType : outOfRange)(api, `values[${index}]`, `an integer that fits ${dtype}`, value)
}
