/** Reads and writes C structures by offset. The generator provides the layouts. */
import { describeValue, type FieldCodec, fieldCodec, isView, type OwnedArrayOf } from '@shoal/types'
import { NativeMemory } from './memory/nativeMemory.js'

/** Type of a field that is not a structure. */
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

/** A field, with the offset of the C compiler. */
export interface StructField {
  /** Name in C. */
  readonly name: string
  /** Bytes from the start of the structure. */
  readonly offset: number
  /** Its type. */
  readonly kind: PrimitiveKind | StructCodec<object>
  /** Number of elements of an array. */
  readonly count?: number
}

/** The generator's layout of a structure. */
export interface StructLayout {
  /** Name in C. */
  readonly name: string
  /** In bytes. */
  readonly size: number
  /** In bytes. */
  readonly alignment: number
  /** All fields, in the order of C. */
  readonly fields: readonly StructField[]
}

/** Memory that holds a structure. */
export type StructMemory = ArrayBufferView | ArrayBufferLike | NativeMemory

/**
 * Reader and writer of a C structure.
 *
 * 64-bit integers and pointers are bigints, byte arrays are `Uint8Array`s, other arrays are arrays. The members of a
 * union share an offset; write only the active one.
 */
export interface StructCodec<T extends object> {
  /** Name in C. */
  readonly name: string
  /** Size in bytes, padding included. */
  readonly size: number
  /** Alignment in bytes. */
  readonly alignment: number
  /** Offset of each field in bytes. */
  readonly offsets: { readonly [K in keyof T & string]: number }
  /** Allocates zeroed memory for one structure and writes the given fields. */
  allocate(value?: StructValue<T>): OwnedArrayOf<'u8'>
  /** Reads a structure. @throws RangeError if the memory is too short */
  read(memory: StructMemory, byteOffset?: number): T
  /** Writes the fields in `value`; others stay. @throws RangeError, TypeError that name structure and field */
  write(memory: StructMemory, value: StructValue<T>, byteOffset?: number): void
  /** Returns a view whose properties read and write the memory directly. */
  view(memory: StructMemory, byteOffset?: number): T
}

/** A structure with optional fields at any depth; arrays may be shorter than in the structure. */
export type StructValue<T> = T extends Uint8Array
  ? ArrayLike<number>
  : T extends readonly (infer E)[]
    ? readonly StructValue<E>[]
    : T extends object
      ? { readonly [K in keyof T]?: StructValue<T[K]> | undefined }
      : T

const primitives = new Map<PrimitiveKind, FieldCodec>()

/** Returns the field codec of `@shoal/types`, which user-defined structs also use. */
function primitive(kind: PrimitiveKind): FieldCodec {
  let codec = primitives.get(kind)
  if (codec === undefined) {
    codec = fieldCodec(kind === 'pointer' ? 'ptr' : kind, kind)
    primitives.set(kind, codec)
  }
  return codec
}

function bytesOf(memory: StructMemory): DataView {
  if (memory instanceof NativeMemory) return new DataView(memory.buffer)
  return isView(memory) ? new DataView(memory.buffer, memory.byteOffset, memory.byteLength) : new DataView(memory)
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

  allocate(value: Record<string, unknown> = {}): OwnedArrayOf<'u8'> {
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
      throw new TypeError(`${this.name} must be an object with its fields, not ${describeValue(value)}`)
    for (const name of Object.keys(value)) {
      const field = this.#fields.find((candidate) => candidate.name === name)
      if (field === undefined) throw new TypeError(`${this.name} must have only its own fields, not '${name}'`)
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
      const last = `${data.byteLength - this.size}, for ${this.size} bytes in ${data.byteLength}`
      throw new RangeError(
        `${this.name}: byteOffset must be an integer from 0 to ${last}, not ${describeValue(byteOffset)}`,
      )
    }
    return new DataView(data.buffer, data.byteOffset + byteOffset, this.size)
  }

  #writeField(data: DataView, field: StructField, value: unknown): void {
    writeField(data, field, value, `${this.name}.${field.name}`)
  }
}

function sizeOf(kind: StructField['kind']): number {
  return typeof kind === 'string' ? primitive(kind).bytes : kind.size
}

function readField(data: DataView, { kind, offset, count }: StructField): unknown {
  if (count === undefined) return readOne(data, kind, offset)
  if (kind === 'u8' || kind === 'i8') return new Uint8Array(data.buffer, data.byteOffset + offset, count).slice()
  return Array.from({ length: count }, (_, index) => readOne(data, kind, offset + index * sizeOf(kind)))
}

function readOne(data: DataView, kind: StructField['kind'], offset: number): unknown {
  return typeof kind === 'string' ? primitive(kind).read(data, offset) : kind.read(data, offset)
}

function writeField(data: DataView, { kind, offset, count }: StructField, value: unknown, path: string): void {
  if (count === undefined) {
    writeOne(data, kind, offset, value, path)
    return
  }
  const values = value as ArrayLike<unknown>
  if (typeof value !== 'object' || value === null || typeof values.length !== 'number') {
    throw new TypeError(`${path} must be an array, not ${describeValue(value)}`)
  }
  if (values.length > count)
    throw new RangeError(`${path} must be an array of at most ${count}, not of ${values.length}`)
  // Byte arrays are read as 0 … 255 for both char and unsigned char.
  const element = kind === 'i8' ? 'u8' : kind
  for (let index = 0; index < values.length; index++) {
    writeOne(data, element, offset + index * sizeOf(kind), values[index], `${path}[${index}]`)
  }
}

function writeOne(data: DataView, kind: StructField['kind'], offset: number, value: unknown, path: string): void {
  if (typeof kind !== 'string') kind.write(data, value as object, offset)
  else primitive(kind).write(data, offset, kind === 'pointer' && value === null ? 0n : value, path)
}

/** Makes the codec of a structure. */
export function defineStructCodec<T extends object>(layout: StructLayout): StructCodec<T> {
  return new Codec(layout) as unknown as StructCodec<T>
}
