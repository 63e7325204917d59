import type { DType, OwnedArrayOf } from '../dtypes/dtype.js'

/**
 * Type of a struct's field: a dtype, `'ptr'` (a 64-bit address), another struct, a type of `defineArray` or
 * `defineTuple`, or an array `[type, count]`.
 */
export type FieldType = DType | 'ptr' | CompoundType | FieldArray

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
          : T extends ArrayType<infer E, number> | readonly [infer E extends FieldType, number]
            ? FieldValue<E>[]
            : T extends TupleType<infer L>
              ? TupleValue<L>
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
          : T extends ArrayType<infer E, number> | readonly [infer E extends FieldType, number]
            ? ArrayLike<FieldInput<E>>
            : T extends TupleType<infer L>
              ? TupleInput<L>
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

/** What reading a tuple gives: an array with the value of each part. */
export type TupleValue<L extends readonly FieldType[]> = { -readonly [I in keyof L]: FieldValue<L[I]> }

/** What may be written as a tuple: an array with a value for each part. */
export type TupleInput<L extends readonly FieldType[]> = { readonly [I in keyof L]: FieldInput<L[I]> }

/**
 * What structs, arrays and tuples have in common: plain data of `V`, written from `I`, as C compilers for 64-bit CUDA
 * hosts lay it out.
 */
export interface CompoundType<I = unknown, V = unknown> {
  /** Tells it from dtypes, and what it is. */
  readonly kind: 'struct' | 'array' | 'tuple'
  /** Its name, for people. */
  readonly name: string
  /** `sizeof`: a multiple of the alignment, padding included. */
  readonly bytes: number
  /** In bytes. */
  readonly alignment: number
  /**
   * Writes one value. Padding keeps what was there.
   *
   * @param byteOffset where in `target` it begins, in bytes
   * @throws TypeError when a part is missing, unknown or of the wrong kind
   * @throws RangeError when an integer does not fit, an array has another length, or `target` ends too soon
   */
  write(target: ArrayBufferView | ArrayBufferLike, value: I, byteOffset?: number): void
  /**
   * Reads one value.
   *
   * @throws RangeError when `source` ends too soon
   */
  read(source: ArrayBufferView | ArrayBufferLike, byteOffset?: number): V
  /** The bytes of values one after the other, padding zero. Throws as `write`. */
  encode(...values: readonly I[]): OwnedArrayOf<'u8'>
  /** The same for a list, which may be longer than a call can have arguments. */
  encodeArray(values: ArrayLike<I>): OwnedArrayOf<'u8'>
  /**
   * All values that lie one after the other.
   *
   * @throws RangeError when `source` is not a whole number of values long
   */
  decode(source: ArrayBufferView | ArrayBufferLike): V[]
}

/** A plain-data struct laid out as C compilers do for 64-bit CUDA hosts and devices. */
export interface StructType<F extends StructFields = StructFields>
  extends CompoundType<StructInput<F>, StructValue<F>> {
  /** Tells it from dtypes. */
  readonly kind: 'struct'
  /** The fields in order, with their offsets. */
  readonly fields: readonly StructField[]
}

/** `count` values of one type, as one element of memory. */
export interface ArrayType<T extends FieldType, N extends number = number>
  extends CompoundType<ArrayLike<FieldInput<T>>, FieldValue<T>[]> {
  /** Tells it from dtypes. */
  readonly kind: 'array'
  /** The type of each value. */
  readonly element: T
  /** How many there are. */
  readonly count: N
}

/** Values of several types, as one element of memory: laid out as a struct with these fields. */
export interface TupleType<L extends readonly FieldType[]> extends CompoundType<TupleInput<L>, TupleValue<L>> {
  /** Tells it from dtypes. */
  readonly kind: 'tuple'
  /** The types in order. */
  readonly types: L
}
