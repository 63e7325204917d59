import { isArray, propertyOf } from '../anyValue.js'
import { wrongType } from '../arguments/scalars.js'
import { describeValue } from '../describeValue.js'
import { type DType, dtypeInfo, isDType } from '../dtypes/dtype.js'
import { decodeFloat, encodeFloat } from '../dtypes/floatFormat.js'
import { floatFormats, saturatesByDefault } from '../dtypes/narrowFloats.js'
import type { CompoundType, FieldArray, FieldType } from './types.js'

/** Converts one field between JavaScript and bytes. */
export interface FieldCodec {
  /** Bytes of the field. */
  readonly bytes: number
  /** In bytes. */
  readonly alignment: number
  /** Writes the field. Errors name it by `path`. @throws TypeError, RangeError */
  write(view: DataView, offset: number, value: unknown, path: string): void
  /** Reads the field. */
  read(view: DataView, offset: number): unknown
}

/** A struct, an array or a tuple whose codec enclosing types can use. */
export interface CompoundWithCodec extends CompoundType {
  readonly codec: FieldCodec
}

const kinds: readonly unknown[] = ['struct', 'array', 'tuple']

/** True for a compound type, also of another copy of the package. */
export function isCompoundType(value: unknown): value is CompoundType {
  return typeof value === 'object' && kinds.includes(propertyOf(value, 'kind')) && 'codec' in (value as object)
}

/** Deepest nesting of arrays; the limit also stops an array that contains itself. */
const deepest = 32

/** Returns the codec of a field type; `path` names the field in errors. */
export function fieldCodec(type: FieldType, path: string, depth = 0, api = 'defineStruct'): FieldCodec {
  if (depth > deepest) {
    const top = path.slice(0, path.indexOf('['))
    throw new TypeError(`${api}: ${top} must have arrays at most ${deepest} deep, and none that contains itself`)
  }
  if (type === 'ptr' || isDType(type)) return scalarCodecs()[type]
  if (isArray(type)) return arrayCodec(type as unknown as FieldArray, path, depth, api)
  if (isCompoundType(type)) return (type as unknown as CompoundWithCodec).codec
  throw wrongType(api, path, "a dtype, 'ptr', a struct of defineStruct or [type, count]", type)
}

type Getter = (view: DataView, offset: number) => number
type Setter = (view: DataView, offset: number, value: number) => void

function scalar(dtype: DType, write: FieldCodec['write'], read: FieldCodec['read']): FieldCodec {
  const { bytes, alignment } = dtypeInfo(dtype)
  return { bytes, alignment, write, read }
}

function integer(dtype: DType, least: number, most: number, get: Getter, set: Setter): FieldCodec {
  return scalar(
    dtype,
    (view, offset, value, path) => {
      if (typeof value !== 'number') throw wrongKind(path, 'a number', value)
      if (!Number.isInteger(value) && Number.isFinite(value)) throw wrongKind(path, 'an integer', value)
      if (!(value >= least && value <= most)) throw doesNotFit(path, least, most, value)
      set(view, offset, value)
    },
    get,
  )
}

function bigInteger(
  least: bigint,
  most: bigint,
  get: (view: DataView, offset: number) => bigint,
  set: (view: DataView, offset: number, value: bigint) => void,
): FieldCodec {
  return {
    bytes: 8,
    alignment: 8,
    write(view, offset, value, path) {
      let whole: bigint
      if (typeof value === 'bigint') whole = value
      else if (Number.isSafeInteger(value)) whole = BigInt(value as number)
      else throw wrongKind(path, 'a bigint or safe integer', value)
      if (whole < least || whole > most) throw doesNotFit(path, least, most, value)
      set(view, offset, whole)
    },
    read: get,
  }
}

function float(dtype: DType, get: Getter, set: Setter): FieldCodec {
  return scalar(
    dtype,
    (view, offset, value, path) => {
      if (typeof value !== 'number') throw wrongKind(path, 'a number', value)
      set(view, offset, value)
    },
    get,
  )
}

function narrowFloat(dtype: keyof typeof floatFormats): FieldCodec {
  const format = floatFormats[dtype]
  const saturate = saturatesByDefault(dtype)
  return dtypeInfo(dtype).bytes === 1
    ? float(
        dtype,
        (view, offset) => decodeFloat(format, view.getUint8(offset)),
        (view, offset, value) => view.setUint8(offset, encodeFloat(format, value, saturate)),
      )
    : float(
        dtype,
        (view, offset) => decodeFloat(format, view.getUint16(offset, true)),
        (view, offset, value) => view.setUint16(offset, encodeFloat(format, value, saturate), true),
      )
}

function complex(dtype: DType, part: FieldCodec): FieldCodec {
  return scalar(
    dtype,
    (view, offset, value, path) => {
      if (typeof value !== 'object' || value === null) throw wrongKind(path, 'an object with re and im', value)
      const { re, im } = value as { re?: unknown; im?: unknown }
      part.write(view, offset, re, `${path}.re`)
      part.write(view, offset + part.bytes, im, `${path}.im`)
    },
    (view, offset) => ({ re: part.read(view, offset), im: part.read(view, offset + part.bytes) }),
  )
}

let codecs: { readonly [T in DType | 'ptr']: FieldCodec } | undefined

/** Made on first use, because most programs have no structs. CUDA devices and all CUDA hosts are little-endian. */
function scalarCodecs(): { readonly [T in DType | 'ptr']: FieldCodec } {
  codecs ??= makeScalarCodecs()
  return codecs
}

function makeScalarCodecs(): { readonly [T in DType | 'ptr']: FieldCodec } {
  const ptr = bigInteger(
    0n,
    (1n << 64n) - 1n,
    (view, offset) => view.getBigUint64(offset, true),
    (view, offset, value) => view.setBigUint64(offset, value, true),
  )
  const f32 = float(
    'f32',
    (view, offset) => view.getFloat32(offset, true),
    (view, offset, value) => view.setFloat32(offset, value, true),
  )
  const f64 = float(
    'f64',
    (view, offset) => view.getFloat64(offset, true),
    (view, offset, value) => view.setFloat64(offset, value, true),
  )
  return {
    ptr,
    i8: integer(
      'i8',
      -0x80,
      0x7f,
      (v, o) => v.getInt8(o),
      (v, o, x) => v.setInt8(o, x),
    ),
    u8: integer(
      'u8',
      0,
      0xff,
      (v, o) => v.getUint8(o),
      (v, o, x) => v.setUint8(o, x),
    ),
    i16: integer(
      'i16',
      -0x8000,
      0x7fff,
      (v, o) => v.getInt16(o, true),
      (v, o, x) => v.setInt16(o, x, true),
    ),
    u16: integer(
      'u16',
      0,
      0xffff,
      (v, o) => v.getUint16(o, true),
      (v, o, x) => v.setUint16(o, x, true),
    ),
    i32: integer(
      'i32',
      -0x8000_0000,
      0x7fff_ffff,
      (v, o) => v.getInt32(o, true),
      (v, o, x) => v.setInt32(o, x, true),
    ),
    u32: integer(
      'u32',
      0,
      0xffff_ffff,
      (v, o) => v.getUint32(o, true),
      (v, o, x) => v.setUint32(o, x, true),
    ),
    i64: bigInteger(
      -(1n << 63n),
      (1n << 63n) - 1n,
      (v, o) => v.getBigInt64(o, true),
      (v, o, x) => v.setBigInt64(o, x, true),
    ),
    u64: ptr,
    f16: narrowFloat('f16'),
    bf16: narrowFloat('bf16'),
    f8e4m3: narrowFloat('f8e4m3'),
    f8e5m2: narrowFloat('f8e5m2'),
    f32,
    f64,
    complex64: complex('complex64', f32),
    complex128: complex('complex128', f64),
    bool: scalar(
      'bool',
      (view, offset, value, path) => {
        if (typeof value !== 'boolean') throw wrongKind(path, 'a boolean', value)
        view.setUint8(offset, value ? 1 : 0)
      },
      (view, offset) => view.getUint8(offset) !== 0,
    ),
  }
}

/** Returns the codec of `[type, count]`. @throws TypeError */
export function arrayCodec(type: FieldArray, path: string, depth: number, api: string): FieldCodec {
  const [elementType, count] = type
  if (type.length !== 2 || !Number.isSafeInteger(count) || count < 1) {
    throw wrongType(api, path, '[type, count] with a count from 1', count)
  }
  const element = fieldCodec(elementType, `${path}[]`, depth + 1, api)
  return {
    bytes: element.bytes * count,
    alignment: element.alignment,
    write(view, offset, value, fieldPath) {
      const values = tupleValues(value, count, fieldPath)
      let index = 0
      try {
        for (; index < count; index += 1) element.write(view, offset + index * element.bytes, values[index], fieldPath)
      } catch (error) {
        // Repeats the failed write with the element's name: making the name costs more than a write.
        element.write(view, offset + index * element.bytes, values[index], `${fieldPath}[${index}]`)
        throw error
      }
    },
    read: (view, offset) =>
      Array.from({ length: count }, (_, index) => element.read(view, offset + index * element.bytes)),
  }
}

/** Returns a list of exactly `count` values. @throws TypeError, RangeError */
export function tupleValues(value: unknown, count: number, path: string): ArrayLike<unknown> {
  if (typeof value !== 'object' || value === null || !('length' in value)) {
    throw wrongKind(path, `an array of ${count}`, value)
  }
  const values = value as ArrayLike<unknown>
  if (values.length === count) return values
  throw new RangeError(`${path} must be an array of ${count}, not of ${values.length}`)
}

function wrongKind(path: string, wanted: string, value: unknown): TypeError {
  return new TypeError(`${path} must be ${wanted}, not ${describeValue(value)}`)
}

function doesNotFit(path: string, least: number | bigint, most: number | bigint, value: unknown): RangeError {
  return new RangeError(`${path} must be an integer from ${least} to ${most}, not ${describeValue(value)}`)
}
