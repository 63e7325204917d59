import { describeValue } from '../describeValue.js'
import { type FieldCodec, fieldCodec, type StructWithCodec } from './fieldCodec.js'
import type { StructField, StructFields, StructInput, StructType, StructValue } from './types.js'

export interface StructOptions {
  /** Least alignment in bytes, a power of two: `alignas(16)`, or `__align__(16)` in CUDA C++. */
  readonly align?: number
}

interface LaidOutField extends StructField {
  readonly codec: FieldCodec
  readonly path: string
}

/**
 * A plain-data struct for device memory elements and kernel arguments, laid out as a C compiler does: every field at
 * the next multiple of its alignment, the size a multiple of the largest one.
 *
 * ```ts
 * const Particle = defineStruct('Particle', { position: ['f32', 3], id: 'u64', alive: 'bool' })
 * Particle.bytes // 32
 * const bytes = Particle.encode({ position: [0, 0, 1], id: 7n, alive: true })
 * ```
 *
 * @throws TypeError when a name is not a C identifier, a type is unknown, there is no field, or `align` is no power of
 * two
 */
export function defineStruct<const F extends StructFields>(
  name: string,
  fields: F,
  options: StructOptions = {},
): StructType<F> {
  checkName(name, 'a struct')
  const laidOut: LaidOutField[] = []
  let end = 0
  let alignment = checkedAlign(options.align ?? 1)
  for (const [fieldName, type] of Object.entries(fields)) {
    // Names that are numbers would also lose their order in the object.
    checkName(fieldName, `a field of ${name}`)
    const path = `${name}.${fieldName}`
    const codec = fieldCodec(type, path)
    const offset = roundUp(end, codec.alignment)
    laidOut.push({ name: fieldName, type, offset, bytes: codec.bytes, alignment: codec.alignment, codec, path })
    end = offset + codec.bytes
    alignment = Math.max(alignment, codec.alignment)
  }
  if (laidOut.length === 0) throw new TypeError(`struct ${name} has no fields`)
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
    const view = viewOf(target)
    this.#checkRoom(view, byteOffset)
    this.#writeFields(view, byteOffset, value, this.name)
  }

  read(source: ArrayBufferView | ArrayBufferLike, byteOffset = 0): StructValue<StructFields> {
    const view = viewOf(source)
    this.#checkRoom(view, byteOffset)
    return this.#readFields(view, byteOffset)
  }

  encode(...values: readonly StructInput<StructFields>[]): Uint8Array {
    const bytes = new Uint8Array(this.bytes * values.length)
    const view = viewOf(bytes)
    for (const [index, value] of values.entries()) this.#writeFields(view, index * this.bytes, value, this.name)
    return bytes
  }

  decode(source: ArrayBufferView | ArrayBufferLike): StructValue<StructFields>[] {
    const view = viewOf(source)
    if (view.byteLength % this.bytes !== 0) {
      throw new RangeError(`${view.byteLength} bytes are no whole number of ${this.name} of ${this.bytes} bytes`)
    }
    return Array.from({ length: view.byteLength / this.bytes }, (_, index) =>
      this.#readFields(view, index * this.bytes),
    )
  }

  #writeFields(view: DataView, base: number, value: unknown, path: string): void {
    if (typeof value !== 'object' || value === null) {
      throw new TypeError(`${path} takes an object with its fields, got ${describeValue(value)}`)
    }
    for (const name of Object.keys(value)) {
      if (!this.#names.has(name)) throw new TypeError(`${this.name} has no field ${name}`)
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
      throw new RangeError(
        `${this.name} of ${this.bytes} bytes does not fit at byte ${byteOffset} of ${view.byteLength}`,
      )
    }
  }
}

function viewOf(memory: ArrayBufferView | ArrayBufferLike): DataView {
  if (ArrayBuffer.isView(memory)) return new DataView(memory.buffer, memory.byteOffset, memory.byteLength)
  // By tag, since a buffer of another realm (node:vm) is no instance of this one's class.
  const tag = Object.prototype.toString.call(memory)
  if (tag === '[object ArrayBuffer]' || tag === '[object SharedArrayBuffer]') return new DataView(memory)
  throw new TypeError(`expected a view or buffer, got ${describeValue(memory)}`)
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple
}

function checkName(name: unknown, what: string): void {
  if (typeof name !== 'string' || !/^[A-Za-z_]\w*$/.test(name) || name === '__proto__') {
    throw new TypeError(`the name of ${what} must be a C identifier, got ${describeValue(name)}`)
  }
}

function checkedAlign(align: unknown): number {
  if (
    typeof align !== 'number' ||
    !Number.isInteger(align) ||
    align < 1 ||
    align > 4096 ||
    (align & (align - 1)) !== 0
  ) {
    throw new TypeError(`align must be a power of two from 1 to 4096, got ${describeValue(align)}`)
  }
  return align
}
