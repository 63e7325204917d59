/** Reads and writes C structures by their offsets. Layouts come from the generator; nothing here computes one. */
import { NativeMemory } from './memory/nativeMemory.js'

export type PrimitiveKind =
  | 'i8'
  | 'u8'
  | 'i16'
  | 'u16'
  | 'i32'
  | 'u32'
  | 'i64'
  | 'u64'
  | 'f32'
  | 'f64'
  | 'pointer'
  | 'bool'

export interface StructField {
  readonly name: string
  /** Bytes from the start of the structure. */
  readonly offset: number
  readonly kind: PrimitiveKind | StructCodec<object>
  /** Elements, for an array. */
  readonly count?: number
}

export interface StructLayout {
  readonly name: string
  readonly size: number
  readonly alignment: number
  readonly fields: readonly StructField[]
}

/** Memory that holds a structure. */
export type StructMemory = ArrayBufferView | ArrayBufferLike | NativeMemory

/**
 * A structure's layout with its reader and writer. Integers of 64 bits and pointers are bigints; arrays of bytes are
 * `Uint8Array`s, other arrays are arrays. The members of a union all stand at its offset; write only the one that counts.
 */
export interface StructCodec<T extends object> {
  readonly name: string
  /** Bytes, padding included. */
  readonly size: number
  /** Bytes. */
  readonly alignment: number
  /** Bytes from the start, by field. */
  readonly offsets: { readonly [K in keyof T & string]: number }
  /** Zeroed memory for one structure, with the given fields written. */
  allocate(value?: StructValue<T>): Uint8Array<ArrayBuffer>
  /** @throws RangeError when the memory ends before the structure does. */
  read(memory: StructMemory, byteOffset?: number): T
  /** Writes the fields that `value` has and leaves the others. @throws RangeError, TypeError naming structure and field. */
  write(memory: StructMemory, value: StructValue<T>, byteOffset?: number): void
  /** The structure in place: reading a property reads memory, setting it writes. */
  view(memory: StructMemory, byteOffset?: number): T
}

/** A structure with any of its fields left out, at any depth; arrays may be shorter than the structure's. */
export type StructValue<T> = T extends Uint8Array
  ? ArrayLike<number>
  : T extends readonly (infer E)[]
    ? readonly StructValue<E>[]
    : T extends object
      ? { readonly [K in keyof T]?: StructValue<T[K]> | undefined }
      : T

interface Primitive {
  readonly size: number
  get(data: DataView, offset: number): number | bigint | boolean
  set(data: DataView, offset: number, value: unknown): void
}

function integer(
  size: number,
  low: number,
  high: number,
  get: Primitive['get'],
  put: (data: DataView, offset: number, value: number) => void,
): Primitive {
  return {
    size,
    get,
    set(data, offset, value) {
      if (typeof value !== 'number' || !Number.isInteger(value)) throw new TypeError('must be an integer')
      if (value < low || value > high) throw new RangeError(`must be between ${low} and ${high}`)
      put(data, offset, value)
    },
  }
}

function wide(
  low: bigint,
  high: bigint,
  get: Primitive['get'],
  put: (data: DataView, offset: number, value: bigint) => void,
): Primitive {
  return {
    size: 8,
    get,
    set(data, offset, value) {
      const exact = typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value
      if (typeof exact !== 'bigint') throw new TypeError('must be a bigint or a safe integer')
      if (exact < low || exact > high) throw new RangeError(`must be between ${low} and ${high}`)
      put(data, offset, exact)
    },
  }
}

function float(
  size: number,
  get: Primitive['get'],
  put: (data: DataView, offset: number, value: number) => void,
): Primitive {
  return {
    size,
    get,
    set(data, offset, value) {
      if (typeof value !== 'number') throw new TypeError('must be a number')
      put(data, offset, value)
    },
  }
}

const word = wide(
  0n,
  2n ** 64n - 1n,
  (data, offset) => data.getBigUint64(offset, true),
  (data, offset, value) => data.setBigUint64(offset, value, true),
)

const primitives: { readonly [K in PrimitiveKind]: Primitive } = {
  i8: integer(
    1,
    -128,
    127,
    (d, o) => d.getInt8(o),
    (d, o, v) => d.setInt8(o, v),
  ),
  u8: integer(
    1,
    0,
    255,
    (d, o) => d.getUint8(o),
    (d, o, v) => d.setUint8(o, v),
  ),
  i16: integer(
    2,
    -32768,
    32767,
    (d, o) => d.getInt16(o, true),
    (d, o, v) => d.setInt16(o, v, true),
  ),
  u16: integer(
    2,
    0,
    65535,
    (d, o) => d.getUint16(o, true),
    (d, o, v) => d.setUint16(o, v, true),
  ),
  i32: integer(
    4,
    -(2 ** 31),
    2 ** 31 - 1,
    (d, o) => d.getInt32(o, true),
    (d, o, v) => d.setInt32(o, v, true),
  ),
  u32: integer(
    4,
    0,
    2 ** 32 - 1,
    (d, o) => d.getUint32(o, true),
    (d, o, v) => d.setUint32(o, v, true),
  ),
  i64: wide(
    -(2n ** 63n),
    2n ** 63n - 1n,
    (d, o) => d.getBigInt64(o, true),
    (d, o, v) => d.setBigInt64(o, v, true),
  ),
  u64: word,
  pointer: {
    size: 8,
    get: word.get,
    set: (data, offset, value) => word.set(data, offset, value === null ? 0n : value),
  },
  f32: float(
    4,
    (d, o) => d.getFloat32(o, true),
    (d, o, v) => d.setFloat32(o, v, true),
  ),
  f64: float(
    8,
    (d, o) => d.getFloat64(o, true),
    (d, o, v) => d.setFloat64(o, v, true),
  ),
  bool: {
    size: 1,
    get: (data, offset) => data.getUint8(offset) !== 0,
    set(data, offset, value) {
      if (typeof value !== 'boolean') throw new TypeError('must be a boolean')
      data.setUint8(offset, value ? 1 : 0)
    },
  },
}

function bytesOf(memory: StructMemory): DataView {
  if (memory instanceof NativeMemory) return new DataView(memory.buffer)
  return ArrayBuffer.isView(memory)
    ? new DataView(memory.buffer, memory.byteOffset, memory.byteLength)
    : new DataView(memory)
}

class Codec implements StructCodec<Record<string, unknown>> {
  readonly name: string
  readonly size: number
  readonly alignment: number
  readonly #fields: readonly StructField[]
  #offsets: Record<string, number> | undefined

  constructor(layout: StructLayout) {
    this.name = layout.name
    this.size = layout.size
    this.alignment = layout.alignment
    this.#fields = layout.fields
  }

  get offsets(): Record<string, number> {
    return (this.#offsets ??= Object.fromEntries(this.#fields.map(({ name, offset }) => [name, offset])))
  }

  allocate(value: Record<string, unknown> = {}): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.size)
    this.write(bytes, value)
    return bytes
  }

  read(memory: StructMemory, byteOffset = 0): Record<string, unknown> {
    const data = this.#at(memory, byteOffset)
    return Object.fromEntries(this.#fields.map((field) => [field.name, readField(data, field)]))
  }

  write(memory: StructMemory, value: Record<string, unknown>, byteOffset = 0): void {
    const data = this.#at(memory, byteOffset)
    if (typeof value !== 'object' || value === null)
      throw new TypeError(`${this.name}: expected an object with its fields`)
    for (const name of Object.keys(value)) {
      const field = this.#fields.find((candidate) => candidate.name === name)
      if (field === undefined) throw new TypeError(`${this.name} has no field '${name}'`)
      if (value[name] !== undefined) this.#writeField(data, field, value[name])
    }
  }

  view(memory: StructMemory, byteOffset = 0): Record<string, unknown> {
    const data = this.#at(memory, byteOffset)
    const view: Record<string, unknown> = {}
    for (const field of this.#fields) {
      Object.defineProperty(view, field.name, {
        enumerable: true,
        get: () =>
          typeof field.kind === 'object' && field.count === undefined
            ? field.kind.view(data, field.offset)
            : readField(data, field),
        set: (value: unknown) => this.#writeField(data, field, value),
      })
    }
    return view
  }

  #at(memory: StructMemory, byteOffset: number): DataView {
    const data = bytesOf(memory)
    if (!Number.isInteger(byteOffset) || byteOffset < 0 || byteOffset + this.size > data.byteLength) {
      throw new RangeError(
        `${this.name} takes ${this.size} bytes at offset ${byteOffset}, the memory has ${data.byteLength}`,
      )
    }
    return new DataView(data.buffer, data.byteOffset + byteOffset, this.size)
  }

  #writeField(data: DataView, field: StructField, value: unknown): void {
    try {
      writeField(data, field, value)
    } catch (error) {
      if (error instanceof RangeError) throw new RangeError(`${this.name}.${field.name} ${error.message}`)
      if (error instanceof TypeError) throw new TypeError(`${this.name}.${field.name} ${error.message}`)
      throw error
    }
  }
}

function sizeOf(kind: StructField['kind']): number {
  return typeof kind === 'string' ? primitives[kind].size : kind.size
}

function readField(data: DataView, { kind, offset, count }: StructField): unknown {
  if (count === undefined) return readOne(data, kind, offset)
  if (kind === 'u8' || kind === 'i8') return new Uint8Array(data.buffer, data.byteOffset + offset, count).slice()
  return Array.from({ length: count }, (_, index) => readOne(data, kind, offset + index * sizeOf(kind)))
}

function readOne(data: DataView, kind: StructField['kind'], offset: number): unknown {
  return typeof kind === 'string' ? primitives[kind].get(data, offset) : kind.read(data, offset)
}

function writeField(data: DataView, { kind, offset, count }: StructField, value: unknown): void {
  if (count === undefined) {
    writeOne(data, kind, offset, value)
    return
  }
  const values = value as ArrayLike<unknown>
  if (typeof value !== 'object' || value === null || typeof values.length !== 'number')
    throw new TypeError('must be an array')
  if (values.length > count) throw new RangeError(`has ${count} elements, got ${values.length}`)
  // Bytes come as 0 … 255 whether C calls them char or unsigned char.
  const element = kind === 'i8' ? 'u8' : kind
  for (let index = 0; index < values.length; index++)
    writeOne(data, element, offset + index * sizeOf(kind), values[index])
}

function writeOne(data: DataView, kind: StructField['kind'], offset: number, value: unknown): void {
  if (typeof kind === 'string') primitives[kind].set(data, offset, value)
  else kind.write(data, value as object, offset)
}

/** Makes the codec of a structure. */
export function defineStructCodec<T extends object>(layout: StructLayout): StructCodec<T> {
  return new Codec(layout) as unknown as StructCodec<T>
}
