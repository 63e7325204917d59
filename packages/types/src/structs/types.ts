import type { DType, OwnedArrayOf } from '../dtypes/dtype.js'

/**
 * Type of a struct's field.
 *
 * A dtype, `'ptr'` (a 64-bit address), another struct, a type of `defineArray` or `defineTuple`, or an array `[type,
 * count]`.
 */
export type FieldType = DType | 'ptr' | CompoundType | FieldArray

/** `[type, count]`: `type name[count]` in C. Nest it for more dimensions. */
export type FieldArray = readonly [type: FieldType, count: number]

/** The fields of a struct, in the order of their declaration. */
export interface StructFields {
  readonly [name: string]: FieldType
}

/** A complex number. */
export interface Complex {
  /** The real part. */
  readonly re: number
  /** The imaginary part. */
  readonly im: number
}

/** Value of a field as read. */
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
          : T extends ArrayType<infer E, number> | readonly [infer E extends FieldType, number]
            ? FieldValue<E>[]
            : T extends TupleType<infer L>
              ? TupleValue<L>
              : never

/** Value of a struct as read: an object with the value of every field. */
export type StructValue<F extends StructFields> = { -readonly [N in keyof F]: FieldValue<F[N]> }

/** Accepted input for a field: 64-bit integers also as safe integers, arrays also as typed arrays. */
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
          : T extends ArrayType<infer E, number> | readonly [infer E extends FieldType, number]
            ? ArrayLike<FieldInput<E>>
            : T extends TupleType<infer L>
              ? TupleInput<L>
              : never

/** Accepted input for a struct: an object with every field and no other. */
export type StructInput<F extends StructFields> = { readonly [N in keyof F]: FieldInput<F[N]> }

/** Position of a field in a struct. */
export interface StructField {
  /** Name of the field. */
  readonly name: string
  /** Type of the field. */
  readonly type: FieldType
  /** Bytes from the start of the struct. */
  readonly offset: number
  /** Size in bytes. */
  readonly bytes: number
  /** In bytes. */
  readonly alignment: number
}

/** Value of a tuple as read: an array with the value of each part. */
export type TupleValue<L extends readonly FieldType[]> = { -readonly [I in keyof L]: FieldValue<L[I]> }

/** Accepted input for a tuple: an array with a value for each part. */
export type TupleInput<L extends readonly FieldType[]> = { readonly [I in keyof L]: FieldInput<L[I]> }

/**
 * Common interface of structs, arrays and tuples.
 *
 * Plain data read as `V` and written from `I`, with the layout of C compilers for 64-bit CUDA hosts.
 */
export interface CompoundType<I = unknown, V = unknown> {
  /** Discriminates compound types from each other and from dtypes. */
  readonly kind: 'struct' | 'array' | 'tuple'
  /** Name of the type, for people. */
  readonly name: string
  /** `sizeof`: a multiple of the alignment, padding included. */
  readonly bytes: number
  /** In bytes. */
  readonly alignment: number
  /**
   * Writes one value. Padding bytes keep their content.
   *
   * @param byteOffset start of the value in `target`, in bytes
   * @throws TypeError when a part is missing, unknown or of the wrong kind
   * @throws RangeError when an integer does not fit, an array has another length, or `target` is too short
   */
  write(target: ArrayBufferView | ArrayBufferLike, value: I, byteOffset?: number): void
  /**
   * Reads one value.
   *
   * @throws RangeError when `source` is too short
   */
  read(source: ArrayBufferView | ArrayBufferLike, byteOffset?: number): V
  /** Encodes consecutive values; padding is zero. Throws as `write`. */
  encode(...values: readonly I[]): OwnedArrayOf<'u8'>
  /** Encodes a list of values, which may exceed the maximum number of arguments of a call. */
  encodeArray(values: ArrayLike<I>): OwnedArrayOf<'u8'>
  /**
   * Decodes all consecutive values.
   *
   * @throws RangeError when the length of `source` is not a multiple of the type's size
   */
  decode(source: ArrayBufferView | ArrayBufferLike): V[]
}

/** A plain-data struct, laid out as by C compilers for 64-bit CUDA hosts and devices. */
export interface StructType<F extends StructFields = StructFields>
  extends CompoundType<StructInput<F>, StructValue<F>> {
  /** Discriminates structs. */
  readonly kind: 'struct'
  /** The fields in order, with their offsets. */
  readonly fields: readonly StructField[]
}

/** An array of `count` values of one type, as one element of memory. */
export interface ArrayType<T extends FieldType, N extends number = number>
  extends CompoundType<ArrayLike<FieldInput<T>>, FieldValue<T>[]> {
  /** Discriminates arrays. */
  readonly kind: 'array'
  /** The type of each value. */
  readonly element: T
  /** Number of values. */
  readonly count: N
}

/** Values of several types as one element of memory, laid out as a struct. */
export interface TupleType<L extends readonly FieldType[]> extends CompoundType<TupleInput<L>, TupleValue<L>> {
  /** Discriminates tuples. */
  readonly kind: 'tuple'
  /** The types in order. */
  readonly types: L
}
