import { isPlainObject, type OptionKeys, optionalOptions } from '../arguments/options.js'
import { outOfRange, requireArrayLike, wrongType } from '../arguments/scalars.js'
import { describeValue } from '../describeValue.js'
import type { OwnedArrayOf } from '../dtypes/dtype.js'
import { isView } from '../isView.js'
import { type FieldCodec, fieldCodec, type StructWithCodec } from './fieldCodec.js'
import type { StructField, StructFields, StructInput, StructType, StructValue } from './types.js'

/** How a struct is laid out where C's own rules are not meant. */
export interface StructOptions {
  /** Least alignment in bytes, a power of two: `alignas(16)`, or `__align__(16)` in CUDA C++. */
  readonly align?: number
}

const optionKeys: OptionKeys<StructOptions> = { align: true }

interface LaidOutField extends StructField {
  readonly codec: FieldCodec
  readonly path: string
}

/**
 * A plain-data struct for device memory elements and kernel arguments, laid out as a C compiler does: every field at
 * the next multiple of its alignment, the size a multiple of the largest one.
 *
 * @example
 * const Particle = defineStruct('Particle', { position: ['f32', 3], id: 'u64', alive: 'bool' })
 * Particle.bytes // 32
 * const bytes = Particle.encode({ position: [0, 0, 1], id: 7n, alive: true })
 *
 * @throws TypeError when a name is not a C identifier, a type is unknown, there is no field, or `align` is no power of
 * two
 */
export function defineStruct<const F extends StructFields>(
  name: string,
  fields: F,
  options?: StructOptions,
): StructType<F> {
  requireIdentifier(name, 'name')
  const laidOut: LaidOutField[] = []
  let end = 0
  let alignment = requireAlignment(optionalOptions(options, 'defineStruct', optionKeys).align)
  if (!isPlainObject(fields)) throw wrongType('defineStruct', 'fields', "a plain object such as { x: 'f32' }", fields)
  for (const [fieldName, type] of Object.entries(fields)) {
    // Names that are numbers would also lose their order in the object.
    requireIdentifier(fieldName, 'a name of fields')
    const path = `${name}.${fieldName}`
    const codec = fieldCodec(type, `fields.${fieldName}`)
    const offset = roundUp(end, codec.alignment)
    laidOut.push({ name: fieldName, type, offset, bytes: codec.bytes, alignment: codec.alignment, codec, path })
    end = offset + codec.bytes
    alignment = Math.max(alignment, codec.alignment)
  }
  if (laidOut.length === 0)
    throw new TypeError(`defineStruct: fields must have at least one field, ${name} has no fields`)
  return new Struct(name, roundUp(end, alignment), alignment, laidOut) as unknown as StructType<F>
}

class Struct implements StructWithCodec {
  readonly kind = 'struct'
  readonly name: string
  readonly bytes: number
  readonly alignment: number
  readonly fields: readonly StructField[]
  readonly #laidOut: readonly LaidOutField[]
  readonly #names: ReadonlySet<string>

  constructor(name: string, bytes: number, alignment: number, laidOut: readonly LaidOutField[]) {
    this.name = name
    this.bytes = bytes
    this.alignment = alignment
    this.#laidOut = laidOut
    this.#names = new Set(laidOut.map((field) => field.name))
    this.fields = Object.freeze(
      laidOut.map((field) =>
        Object.freeze({
          name: field.name,
          type: field.type,
          offset: field.offset,
          bytes: field.bytes,
          alignment: field.alignment,
        }),
      ),
    )
  }

  get codec(): FieldCodec {
    return {
      bytes: this.bytes,
      alignment: this.alignment,
      write: (view, offset, value, path) => this.#writeFields(view, offset, value, path),
      read: (view, offset) => this.#readFields(view, offset),
    }
  }

  write(target: ArrayBufferView | ArrayBufferLike, value: StructInput<StructFields>, byteOffset = 0): void {
    const view = viewOf(target, this.name)
    this.#checkRoom(view, byteOffset)
    this.#writeFields(view, byteOffset, value, this.name)
  }

  read(source: ArrayBufferView | ArrayBufferLike, byteOffset = 0): StructValue<StructFields> {
    const view = viewOf(source, this.name)
    this.#checkRoom(view, byteOffset)
    return this.#readFields(view, byteOffset)
  }

  encode(...values: readonly StructInput<StructFields>[]): OwnedArrayOf<'u8'> {
    return this.encodeArray(values)
  }

  encodeArray(values: ArrayLike<StructInput<StructFields>>): OwnedArrayOf<'u8'> {
    const count = requireArrayLike(values, `${this.name}.encodeArray`, 'values').length
    const bytes = new Uint8Array(this.bytes * count)
    const view = viewOf(bytes, this.name)
    for (let index = 0; index < count; index += 1) {
      this.#writeFields(view, index * this.bytes, values[index], this.name)
    }
    return bytes
  }

  decode(source: ArrayBufferView | ArrayBufferLike): StructValue<StructFields>[] {
    const view = viewOf(source, this.name)
    if (view.byteLength % this.bytes !== 0) {
      const whole = `a multiple of ${this.bytes} bytes long`
      throw new RangeError(`${this.name}.decode: source must be ${whole}, not ${view.byteLength}`)
    }
    return Array.from({ length: view.byteLength / this.bytes }, (_, index) =>
      this.#readFields(view, index * this.bytes),
    )
  }

  #writeFields(view: DataView, base: number, value: unknown, path: string): void {
    if (typeof value !== 'object' || value === null) {
      throw new TypeError(`${path} must be an object with its fields, not ${describeValue(value)}`)
    }
    for (const name in value) {
      if (!this.#names.has(name) && Object.hasOwn(value, name))
        throw new TypeError(`${path} must have only the fields of ${this.name}, not '${name}'`)
    }
    const values = value as { readonly [name: string]: unknown }
    for (const field of this.#laidOut) {
      const fieldPath = path === this.name ? field.path : `${path}.${field.name}`
      if (values[field.name] === undefined) throw new TypeError(`${fieldPath} is missing`)
      field.codec.write(view, base + field.offset, values[field.name], fieldPath)
    }
  }

  #readFields(view: DataView, base: number): StructValue<StructFields> {
    const out: { [name: string]: unknown } = {}
    for (const field of this.#laidOut) out[field.name] = field.codec.read(view, base + field.offset)
    return out as StructValue<StructFields>
  }

  #checkRoom(view: DataView, byteOffset: number): void {
    if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset + this.bytes > view.byteLength) {
      const room = `an integer from 0 to ${view.byteLength - this.bytes} for ${this.bytes} bytes in ${view.byteLength}`
      throw outOfRange(this.name, 'byteOffset', room, byteOffset)
    }
  }
}

function viewOf(memory: ArrayBufferView | ArrayBufferLike, name: string): DataView {
  if (isView(memory)) {
    if (Object.getPrototypeOf(memory) === DataView.prototype) return memory as DataView
    return new DataView(memory.buffer, memory.byteOffset, memory.byteLength)
  }
  // By tag, since a buffer of another realm (node:vm) is no instance of this one's class.
  const tag = Object.prototype.toString.call(memory)
  if (tag === '[object ArrayBuffer]' || tag === '[object SharedArrayBuffer]') return new DataView(memory)
  throw wrongType(name, 'memory', 'a view or a buffer', memory)
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple
}

function requireIdentifier(value: unknown, name: string): void {
  if (typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value) && value !== '__proto__') return
  throw wrongType('defineStruct', name, 'a C identifier', value)
}

function requireAlignment(align: unknown = 1): number {
  if (typeof align === 'number' && align >= 1 && align <= 4096 && Number.isInteger(Math.log2(align))) return align
  throw wrongType('defineStruct', 'align', 'a power of two from 1 to 4096', align)
}
