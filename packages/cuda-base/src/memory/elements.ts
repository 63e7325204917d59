import { type DType, describeValue, dtypeInfo, encodeBF16, encodeF8E4M3, encodeF8E5M2, encodeF16 } from '@shoal/types'

/** What one element of a dtype is in JavaScript: a number, a bigint too for 64-bit integers, `[real, imaginary]`. */
export type ElementValue<D extends DType = DType> = D extends 'bool'
  ? boolean
  : D extends 'i64' | 'u64'
    ? number | bigint
    : D extends 'complex64' | 'complex128'
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

type Writer = (view: DataView, offset: number, value: unknown, name: string) => void

const writers: { readonly [D in DType]: Writer } = {
  i8: (view, offset, value, name) => view.setInt8(offset, integer('i8', value, name)),
  u8: (view, offset, value, name) => view.setUint8(offset, integer('u8', value, name)),
  i16: (view, offset, value, name) => view.setInt16(offset, integer('i16', value, name), true),
  u16: (view, offset, value, name) => view.setUint16(offset, integer('u16', value, name), true),
  i32: (view, offset, value, name) => view.setInt32(offset, integer('i32', value, name), true),
  u32: (view, offset, value, name) => view.setUint32(offset, integer('u32', value, name), true),
  i64: (view, offset, value, name) => view.setBigInt64(offset, wideInteger('i64', value, name), true),
  u64: (view, offset, value, name) => view.setBigUint64(offset, wideInteger('u64', value, name), true),
  f32: (view, offset, value, name) => view.setFloat32(offset, float('f32', value, name), true),
  f64: (view, offset, value, name) => view.setFloat64(offset, float('f64', value, name), true),
  f16: (view, offset, value, name) => view.setUint16(offset, encodeF16(float('f16', value, name)), true),
  bf16: (view, offset, value, name) => view.setUint16(offset, encodeBF16(float('bf16', value, name)), true),
  f8e4m3: (view, offset, value, name) => view.setUint8(offset, encodeF8E4M3(float('f8e4m3', value, name))),
  f8e5m2: (view, offset, value, name) => view.setUint8(offset, encodeF8E5M2(float('f8e5m2', value, name))),
  bool: (view, offset, value, name) => view.setUint8(offset, truth(value, name) ? 1 : 0),
  complex64: (view, offset, value, name) => {
    const [real, imaginary] = complex('complex64', value, name)
    view.setFloat32(offset, real, true)
    view.setFloat32(offset + 4, imaginary, true)
  },
  complex128: (view, offset, value, name) => {
    const [real, imaginary] = complex('complex128', value, name)
    view.setFloat64(offset, real, true)
    view.setFloat64(offset + 8, imaginary, true)
  },
}

/**
 * Writes one element in the byte order of the device, which is little-endian.
 * @throws TypeError when the value is of the wrong kind, RangeError when it does not fit the dtype.
 */
export function writeElement(view: DataView, offset: number, dtype: DType, value: unknown, name: string): void {
  writers[dtype](view, offset, value, name)
}

/** The bytes of one element. */
export function elementBytes(dtype: DType, value: unknown, name: string): DataView {
  const view = new DataView(new ArrayBuffer(dtypeInfo(dtype).bytes))
  writeElement(view, 0, dtype, value, name)
  return view
}

function integer(dtype: DType, value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw new TypeError(`${name} (${dtype}) must be a whole number, not ${describeValue(value)}`)
  }
  const [least, greatest] = integerRanges[dtype] as readonly [number, number]
  if (value < least || value > greatest) {
    throw new RangeError(`${name} (${dtype}) must be between ${least} and ${greatest}, not ${value}`)
  }
  return value
}

function wideInteger(dtype: 'i64' | 'u64', value: unknown, name: string): bigint {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    const kind = Number.isInteger(value) ? RangeError : TypeError
    throw new kind(`${name} (${dtype}) must be a safe integer or a bigint, not ${value}`)
  }
  if (typeof value !== 'number' && typeof value !== 'bigint') {
    throw new TypeError(`${name} (${dtype}) must be a number or a bigint, not ${describeValue(value)}`)
  }
  const wide = BigInt(value)
  const [least, greatest] = wideRanges[dtype]
  if (wide < least || wide > greatest) throw new RangeError(`${name} does not fit ${dtype}: ${wide}`)
  return wide
}

function float(dtype: DType, value: unknown, name: string): number {
  if (typeof value !== 'number') throw new TypeError(`${name} (${dtype}) must be a number, not ${describeValue(value)}`)
  return value
}

function truth(value: unknown, name: string): boolean {
  if (typeof value !== 'boolean') throw new TypeError(`${name} (bool) must be a boolean, not ${describeValue(value)}`)
  return value
}

function complex(dtype: DType, value: unknown, name: string): readonly [number, number] {
  if (Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'number')) {
    return value as unknown as readonly [number, number]
  }
  throw new TypeError(`${name} (${dtype}) must be [real, imaginary], not ${describeValue(value)}`)
}
