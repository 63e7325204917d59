import {
  type CompoundInputOf,
  type CompoundType,
  type DType,
  type ElementType,
  encodeBF16,
  encodeF8E4M3,
  encodeF8E5M2,
  encodeF16,
  outOfRange,
  wrongType,
} from '@shoal/types'
import { bytesOfElement } from './elementType.js'

/**
 * One element in JavaScript: a number, a bigint for 64-bit integers, `[real, imaginary]`, an object with a struct's
 * fields, or a list with the values of an array or a tuple.
 */
export type ElementValue<E extends ElementType = DType> = E extends CompoundType
  ? CompoundInputOf<E>
  : E extends 'bool'
    ? boolean
    : E extends 'i64' | 'u64'
      ? number | bigint
      : E extends 'complex64' | 'complex128'
        ? readonly [number, number]
        : number

const integerRanges: Partial<Record<DType, readonly [number, number]>> = {
  i8: [-0x80, 0x7f],
  u8: [0, 0xff],
  i16: [-0x8000, 0x7fff],
  u16: [0, 0xffff],
  i32: [-0x8000_0000, 0x7fff_ffff],
  u32: [0, 0xffff_ffff],
}

const wideRanges = { i64: [-(2n ** 63n), 2n ** 63n - 1n], u64: [0n, 2n ** 64n - 1n] } as const

type Writer = (view: DataView, offset: number, value: unknown, api: string, name: string) => void

const writers: { readonly [D in DType]: Writer } = {
  i8: (view, offset, value, api, name) => view.setInt8(offset, integer('i8', value, api, name)),
  u8: (view, offset, value, api, name) => view.setUint8(offset, integer('u8', value, api, name)),
  i16: (view, offset, value, api, name) => view.setInt16(offset, integer('i16', value, api, name), true),
  u16: (view, offset, value, api, name) => view.setUint16(offset, integer('u16', value, api, name), true),
  i32: (view, offset, value, api, name) => view.setInt32(offset, integer('i32', value, api, name), true),
  u32: (view, offset, value, api, name) => view.setUint32(offset, integer('u32', value, api, name), true),
  i64: (view, offset, value, api, name) => view.setBigInt64(offset, wideInteger('i64', value, api, name), true),
  u64: (view, offset, value, api, name) => view.setBigUint64(offset, wideInteger('u64', value, api, name), true),
  f32: (view, offset, value, api, name) => view.setFloat32(offset, float('f32', value, api, name), true),
  f64: (view, offset, value, api, name) => view.setFloat64(offset, float('f64', value, api, name), true),
  f16: (view, offset, value, api, name) => view.setUint16(offset, encodeF16(float('f16', value, api, name)), true),
  bf16: (view, offset, value, api, name) => view.setUint16(offset, encodeBF16(float('bf16', value, api, name)), true),
  f8e4m3: (view, offset, value, api, name) => view.setUint8(offset, encodeF8E4M3(float('f8e4m3', value, api, name))),
  f8e5m2: (view, offset, value, api, name) => view.setUint8(offset, encodeF8E5M2(float('f8e5m2', value, api, name))),
  bool: (view, offset, value, api, name) => view.setUint8(offset, truth(value, api, name) ? 1 : 0),
  complex64: (view, offset, value, api, name) => {
    const [real, imaginary] = complex('complex64', value, api, name)
    view.setFloat32(offset, real, true)
    view.setFloat32(offset + 4, imaginary, true)
  },
  complex128: (view, offset, value, api, name) => {
    const [real, imaginary] = complex('complex128', value, api, name)
    view.setFloat64(offset, real, true)
    view.setFloat64(offset + 8, imaginary, true)
  },
}

/**
 * Writes one element in the little-endian byte order of the device.
 * @throws TypeError for a value of the wrong kind, RangeError for a value that does not fit
 */
export function writeElement(
  view: DataView,
  offset: number,
  type: ElementType,
  value: unknown,
  api: string,
  name: string,
): void {
  if (typeof type === 'string') writers[type](view, offset, value, api, name)
  else writeCompound(view, offset, type, value, api, name)
}

function writeCompound(
  view: DataView,
  offset: number,
  type: CompoundType,
  value: unknown,
  api: string,
  name: string,
): void {
  naming(api, name, () => type.write(view, value as never, offset))
}

/** Encodes a list of structs, arrays or tuples as bytes. Returns other values unchanged. */
export function structBytes<T>(values: T, type: ElementType, api: string, name: string): T | ArrayBufferView {
  if (typeof type === 'string' || !Array.isArray(values)) return values
  return naming(api, name, () => type.encodeArray(values))
}

/** Adds the function and its parameter to a struct's error, which names only the field. */
function naming<T>(api: string, name: string, encode: () => T): T {
  try {
    return encode()
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) error.message = `${api}: ${name}: ${error.message}`
    throw error
  }
}

/** Whether all bytes of an element are zero. True for the number 0 in types that accept it. */
export function isZero(type: ElementType, value: unknown): boolean {
  if (value !== 0 || !Object.is(value, 0) || typeof type !== 'string') return false
  return type !== 'bool' && type !== 'complex64' && type !== 'complex128'
}

/** Views for encoding one element, by number of bytes. Creating a view takes longer than many calls. */
const dtypeElements: (DataView | undefined)[] = []

/** The last request. Programs usually fill with the same number again. */
let lastType: ElementType | undefined
let lastValue: number | undefined
let lastElement: DataView

/** Returns the bytes of one element, valid until the next call. */
export function elementBytes(type: ElementType, value: unknown, api: string, name: string): DataView {
  // 0 and -0 are equal but have different bytes.
  if (type === lastType && value === lastValue && value !== undefined && value !== 0) return lastElement
  const size = bytesOfElement(type)
  // A getter of a struct may call this function again.
  const view =
    typeof type === 'string'
      ? (dtypeElements[size] ??= new DataView(new ArrayBuffer(size)))
      : new DataView(new ArrayBuffer(size))
  writeElement(view, 0, type, value, api, name)
  lastType = type
  // Only numbers are remembered. Any other value invalidates the remembered bytes.
  lastValue = typeof value === 'number' ? value : undefined
  lastElement = view
  return view
}

function integer(dtype: DType, value: unknown, api: string, name: string): number {
  const [least, greatest] = integerRanges[dtype] as readonly [number, number]
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= greatest) return value
  const expected = `an integer from ${least} to ${greatest} (${dtype})`
  throw (typeof value === 'number' && Number.isInteger(value) ? outOfRange : wrongType)(api, name, expected, value)
}

function wideInteger(dtype: 'i64' | 'u64', value: unknown, api: string, name: string): bigint {
  const expected = `a bigint or a safe integer that fits ${dtype}`
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw (Number.isInteger(value) ? outOfRange : wrongType)(api, name, expected, value)
  }
  if (typeof value !== 'number' && typeof value !== 'bigint') throw wrongType(api, name, expected, value)
  const wide = BigInt(value)
  const [least, greatest] = wideRanges[dtype]
  if (wide < least || wide > greatest) throw outOfRange(api, name, expected, value)
  return wide
}

function float(dtype: DType, value: unknown, api: string, name: string): number {
  if (typeof value !== 'number') throw wrongType(api, name, `a number (${dtype})`, value)
  return value
}

function truth(value: unknown, api: string, name: string): boolean {
  if (typeof value !== 'boolean') throw wrongType(api, name, 'a boolean (bool)', value)
  return value
}

function complex(dtype: DType, value: unknown, api: string, name: string): readonly [number, number] {
  if (Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'number')) {
    return value as unknown as readonly [number, number]
  }
  throw wrongType(api, name, `[real, imaginary] (${dtype})`, value)
}
