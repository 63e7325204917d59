// Scalar values in memory, as in C.
import type { FieldType, IntegerKind, Lowered } from '../spec/types.js'

export type ScalarKind = IntegerKind | 'f32' | 'f64' | 'bool'

const accessors = {
  i8: 'Int8',
  u8: 'Uint8',
  bool: 'Uint8',
  i16: 'Int16',
  u16: 'Uint16',
  i32: 'Int32',
  u32: 'Uint32',
  i64: 'BigInt64',
  u64: 'BigUint64',
  f32: 'Float32',
  f64: 'Float64',
} as const

/** The memory kind of a value that is not a struct. Pointers and handles are words. */
export function scalarKind(type: Lowered | FieldType): ScalarKind {
  if (type.kind === 'enum') return type.signed ? 'i32' : 'u32'
  if (type.kind === 'integer' || type.kind === 'float') return type.type
  return type.kind in accessors ? (type.kind as ScalarKind) : 'u64'
}

export function readScalar(data: DataView, at: number, kind: ScalarKind): number | bigint | boolean {
  const value = data[`get${accessors[kind]}`](at, true)
  return kind === 'bool' ? value !== 0 : value
}

export function writeScalar(data: DataView, at: number, kind: ScalarKind, value: number | bigint | boolean): void {
  const isWide = kind === 'i64' || kind === 'u64'
  data[`set${accessors[kind]}`](at, (isWide ? BigInt(value) : Number(value)) as never, true)
}

/** The C name of a kind. */
export function cName(kind: ScalarKind): string {
  if (kind === 'bool') return 'bool'
  if (kind === 'f32' || kind === 'f64') return kind === 'f32' ? 'float' : 'double'
  return `${kind.startsWith('u') ? 'uint' : 'int'}${kind.slice(1)}_t`
}

/** The minimum and maximum of an integer kind. */
export function integerRange(kind: ScalarKind): readonly [bigint, bigint] {
  const bits = BigInt(kind.slice(1))
  return kind.startsWith('u') ? [0n, 2n ** bits - 1n] : [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n]
}

/** Floating-point numbers at boundaries. */
export const floatEdges = [
  0,
  -0,
  1,
  1.5,
  -1,
  Number.NaN,
  Infinity,
  -Infinity,
  5e-324,
  -5e-324,
  2 ** -149,
  2 ** -1022,
  1.1754943508222875e-38,
  3.4028234663852886e38,
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
  0.1,
  2 ** 24 + 1,
]
