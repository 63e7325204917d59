import type { DType, OwnedArrayOf } from '../dtypes/dtype.js'

/** Type of a struct's field: a dtype, `'ptr'` (a 64-bit address), another struct, or an array `[type, count]`. */
export type FieldType = DType | 'ptr' | StructType | FieldArray

/** `[type, count]`, as `type name[count]` in C; nest it for more dimensions. */
export type FieldArray = readonly [type: FieldType, count: number]

/** The fields of a struct, in the order of their declaration. */
export interface StructFields {
  readonly [name: string]: FieldType
}

/** A complex number by its parts. */
export interface Complex {
  /** The real part. */
  readonly re: number
  /** The imaginary part. */
  readonly im: number
}

/** What reading a field gives. */
export type FieldValue<T extends FieldType> = T extends 'i64' | 'u64' | 'ptr'
  ? bigint
  : T extends 'bool'
    ? boolean
    : T extends 'complex64' | 'complex128'
      ? Complex
      : T extends DType
        ? number
        : T extends StructType<infer F>
          ? StructValue<F>
          : T extends readonly [infer E extends FieldType, number]
            ? FieldValue<E>[]
            : never

/** What reading a struct gives: an object with the value of every field. */
export type StructValue<F extends StructFields> = { -readonly [N in keyof F]: FieldValue<F[N]> }

/** What may be written to a field: 64-bit integers also as safe integers, arrays also as typed arrays. */
export type FieldInput<T extends FieldType> = T extends 'i64' | 'u64' | 'ptr'
  ? bigint | number
  : T extends 'bool'
    ? boolean
    : T extends 'complex64' | 'complex128'
      ? Complex
      : T extends DType
        ? number
        : T extends StructType<infer F>
          ? StructInput<F>
          : T extends readonly [infer E extends FieldType, number]
            ? ArrayLike<FieldInput<E>>
            : never

/** What may be written as a struct: an object with every field and no other. */
export type StructInput<F extends StructFields> = { readonly [N in keyof F]: FieldInput<F[N]> }

/** Where a field lies. */
export interface StructField {
  /** Its name. */
  readonly name: string
  /** Its type. */
  readonly type: FieldType
  /** Bytes from the start of the struct. */
  readonly offset: number
  /** Bytes of it. */
  readonly bytes: number
  /** In bytes. */
  readonly alignment: number
}

/** A plain-data struct laid out as C compilers do for 64-bit CUDA hosts and devices. */
export interface StructType<F extends StructFields = StructFields> {
  /** Tells it from dtypes. */
  readonly kind: 'struct'
  /** Its name, for people. */
  readonly name: string
  /** `sizeof`: a multiple of the alignment, padding included. */
  readonly bytes: number
  /** In bytes. */
  readonly alignment: number
  /** The fields in order, with their offsets. */
  readonly fields: readonly StructField[]
  /**
   * Writes one struct. Padding keeps what was there.
   *
   * @param byteOffset where in `target` it begins, in bytes
   * @throws TypeError when a field is missing, unknown or of the wrong kind
   * @throws RangeError when an integer does not fit, an array has another length, or `target` ends too soon
   */
  write(target: ArrayBufferView | ArrayBufferLike, value: StructInput<F>, byteOffset?: number): void
  /**
   * Reads one struct.
   *
   * @throws RangeError when `source` ends too soon
   */
  read(source: ArrayBufferView | ArrayBufferLike, byteOffset?: number): StructValue<F>
  /** The bytes of structs one after the other, padding zero. Throws as `write`. */
  encode(...values: readonly StructInput<F>[]): OwnedArrayOf<'u8'>
  /** The same for a list, which may be longer than a call can have arguments. */
  encodeArray(values: ArrayLike<StructInput<F>>): OwnedArrayOf<'u8'>
  /**
   * All structs that lie one after the other.
   *
   * @throws RangeError when `source` is not a whole number of structs long
   */
  decode(source: ArrayBufferView | ArrayBufferLike): StructValue<F>[]
}
