import { wrongType } from '../arguments/scalars.js'
import { isView } from '../isView.js'

/** All element types of Shoal, named by kind and bits. */
export const dtypes = [
  'i8',
  'u8',
  'i16',
  'u16',
  'i32',
  'u32',
  'i64',
  'u64',
  'f16',
  'bf16',
  'f8e4m3',
  'f8e5m2',
  'f32',
  'f64',
  'complex64',
  'complex128',
  'bool',
] as const

/**
 * Element type of device memory.
 *
 * `f8e4m3` is the OCP E4M3FN format (no infinity), `complex64` two f32, `complex128` two f64, `bool` one byte.
 */
export type DType = (typeof dtypes)[number]

/** Maps each dtype to the typed array that holds it. Narrow floats are held as bits. */
export interface StorageArrays {
  i8: Int8Array
  u8: Uint8Array
  i16: Int16Array
  u16: Uint16Array
  i32: Int32Array
  u32: Uint32Array
  i64: BigInt64Array
  u64: BigUint64Array
  f16: Uint16Array
  bf16: Uint16Array
  f8e4m3: Uint8Array
  f8e5m2: Uint8Array
  f32: Float32Array
  f64: Float64Array
  complex64: Float32Array
  complex128: Float64Array
  bool: Uint8Array
}

/** The typed array that holds elements of dtype `D`. */
export type TypedArrayOf<D extends DType> = StorageArrays[D]

/**
 * The arrays of {@link StorageArrays} over an `ArrayBuffer` that they own.
 *
 * From TypeScript 5.7 on this is `Float32Array<ArrayBuffer>`, before that plain `Float32Array`. The types come from the
 * constructors' declarations, because no single spelling compiles with both.
 */
export interface OwnedArrays {
  i8: ReturnType<Int8ArrayConstructor['of']>
  u8: ReturnType<Uint8ArrayConstructor['of']>
  i16: ReturnType<Int16ArrayConstructor['of']>
  u16: ReturnType<Uint16ArrayConstructor['of']>
  i32: ReturnType<Int32ArrayConstructor['of']>
  u32: ReturnType<Uint32ArrayConstructor['of']>
  i64: ReturnType<BigInt64ArrayConstructor['of']>
  u64: ReturnType<BigUint64ArrayConstructor['of']>
  f16: ReturnType<Uint16ArrayConstructor['of']>
  bf16: ReturnType<Uint16ArrayConstructor['of']>
  f8e4m3: ReturnType<Uint8ArrayConstructor['of']>
  f8e5m2: ReturnType<Uint8ArrayConstructor['of']>
  f32: ReturnType<Float32ArrayConstructor['of']>
  f64: ReturnType<Float64ArrayConstructor['of']>
  complex64: ReturnType<Float32ArrayConstructor['of']>
  complex128: ReturnType<Float64ArrayConstructor['of']>
  bool: ReturnType<Uint8ArrayConstructor['of']>
}

/** The typed array that holds elements of dtype `D`, over an `ArrayBuffer` that it owns. */
export type OwnedArrayOf<D extends DType> = OwnedArrays[D]

/** Any of the typed arrays that hold elements. */
export type StorageArray = StorageArrays[DType]

/** Constructor of the typed array that holds elements of dtype `D`. */
export interface StorageArrayConstructor<D extends DType> {
  /** Bytes of one entry. */
  readonly BYTES_PER_ELEMENT: number
  new (length: number): OwnedArrayOf<D>
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): TypedArrayOf<D>
}

/** How to read the bits of an element. */
export type DTypeKind = 'int' | 'uint' | 'float' | 'complex' | 'bool'

/** Properties of a dtype. */
export interface DTypeInfo<D extends DType = DType> {
  /** The dtype. */
  readonly name: D
  /** Size of one element in bytes. */
  readonly bytes: number
  /** Alignment in bytes of CUDA's C type. `cuFloatComplex` and `cuDoubleComplex` are aligned to their size. */
  readonly alignment: number
  /** How to read the bits of an element. */
  readonly kind: DTypeKind
  /** Typed array that holds elements: `Uint16Array` for f16 and bf16, `Uint8Array` for f8 and bool. */
  readonly typedArray: StorageArrayConstructor<D>
  /** Entries of the typed array for one element: 2 for complex types, otherwise 1. */
  readonly arrayEntries: 1 | 2
  /** Value of `ncclDataType_t`; absent if NCCL has no such type. */
  readonly ncclCode?: number
  /** Type name in NVSHMEM functions such as `nvshmem_<name>_put`; absent if NVSHMEM has no such type. */
  readonly nvshmemName?: string
}

function info<D extends DType>(
  name: D,
  kind: DTypeKind,
  typedArray: StorageArrayConstructor<D>,
  libraries: { readonly nccl?: number; readonly nvshmem?: string },
): DTypeInfo<D> {
  const arrayEntries = kind === 'complex' ? 2 : 1
  const bytes = typedArray.BYTES_PER_ELEMENT * arrayEntries
  return Object.freeze({
    name,
    bytes,
    alignment: bytes,
    kind,
    typedArray,
    arrayEntries,
    ...(libraries.nccl === undefined ? {} : { ncclCode: libraries.nccl }),
    ...(libraries.nvshmem === undefined ? {} : { nvshmemName: libraries.nvshmem }),
  } as const)
}

const table: { readonly [D in DType]: DTypeInfo<D> } = {
  i8: info('i8', 'int', Int8Array, { nccl: 0, nvshmem: 'int8' }),
  u8: info('u8', 'uint', Uint8Array, { nccl: 1, nvshmem: 'uint8' }),
  i16: info('i16', 'int', Int16Array, { nvshmem: 'int16' }),
  u16: info('u16', 'uint', Uint16Array, { nvshmem: 'uint16' }),
  i32: info('i32', 'int', Int32Array, { nccl: 2, nvshmem: 'int32' }),
  u32: info('u32', 'uint', Uint32Array, { nccl: 3, nvshmem: 'uint32' }),
  i64: info('i64', 'int', BigInt64Array, { nccl: 4, nvshmem: 'int64' }),
  u64: info('u64', 'uint', BigUint64Array, { nccl: 5, nvshmem: 'uint64' }),
  f16: info('f16', 'float', Uint16Array, { nccl: 6, nvshmem: 'half' }),
  bf16: info('bf16', 'float', Uint16Array, { nccl: 9, nvshmem: 'bfloat16' }),
  f8e4m3: info('f8e4m3', 'float', Uint8Array, { nccl: 10 }),
  f8e5m2: info('f8e5m2', 'float', Uint8Array, { nccl: 11 }),
  f32: info('f32', 'float', Float32Array, { nccl: 7, nvshmem: 'float' }),
  f64: info('f64', 'float', Float64Array, { nccl: 8, nvshmem: 'double' }),
  complex64: info('complex64', 'complex', Float32Array, {}),
  complex128: info('complex128', 'complex', Float64Array, {}),
  bool: info('bool', 'bool', Uint8Array, {}),
}

// A Map, because each new buffer looks up its dtype and a Map is faster than a computed property.
const byName: ReadonlyMap<unknown, DTypeInfo> = new Map(Object.entries(table) as [DType, DTypeInfo][])

/** True for the name of a dtype. */
export function isDType(value: unknown): value is DType {
  return byName.has(value)
}

/**
 * Returns the properties of a dtype.
 *
 * @param api - the function, and `name` its parameter, that the error names
 * @throws TypeError when `dtype` is not the name of a dtype
 */
export function dtypeInfo<D extends DType>(dtype: D, api = 'dtypeInfo', name = 'dtype'): DTypeInfo<D> {
  const found = byName.get(dtype)
  if (found === undefined) throw wrongType(api, name, `one of ${dtypes.join(', ')}`, dtype)
  return found as unknown as DTypeInfo<D>
}

const dtypeOfArrayName: { readonly [name: string]: DType } = {
  Int8Array: 'i8',
  Uint8Array: 'u8',
  Uint8ClampedArray: 'u8',
  Int16Array: 'i16',
  Uint16Array: 'u16',
  Int32Array: 'i32',
  Uint32Array: 'u32',
  BigInt64Array: 'i64',
  BigUint64Array: 'u64',
  Float16Array: 'f16',
  Float32Array: 'f32',
  Float64Array: 'f64',
}

// This accessor also works for subclasses (Buffer) and other realms; `instanceof` does not work across realms.
const typedArrayName = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)
  ?.get as (this: unknown) => string | undefined

/** True if a view's buffer was detached by a transfer or a release. */
export function isDetached(array: ArrayBufferView): boolean {
  if (!isView(array)) return false
  const { buffer } = array
  // A detached buffer has length 0, and so have its views.
  if (buffer.byteLength > 0 || !(buffer instanceof ArrayBuffer)) return false
  try {
    new Uint8Array(buffer)
    return false
  } catch {
    return true
  }
}

/**
 * Returns the dtype of a typed array by its class.
 *
 * A `Uint16Array` is `u16`, even if it holds f16 bits: only the caller knows that.
 *
 * @throws TypeError when `array` is not a typed array
 */
export function dtypeOf(array: ArrayBufferView, api = 'dtypeOf', parameter = 'array'): DType {
  const name = typedArrayName.call(array)
  const dtype = name === undefined ? undefined : dtypeOfArrayName[name]
  if (dtype === undefined) throw wrongType(api, parameter, 'a typed array', array)
  return dtype
}
