import { isPlainObject, type OptionKeys, optionalOptions } from '../arguments/options.js'
import { wrongType } from '../arguments/scalars.js'
import { describeValue } from '../describeValue.js'
import { Compound, roundUp } from './compound.js'
import { type FieldCodec, fieldCodec } from './fieldCodec.js'
import type { StructField, StructFields, StructType, StructValue } from './types.js'

/** Options that change a struct's layout from C's rules. */
export interface StructOptions {
  /** Minimum alignment in bytes, a power of two: `alignas(16)`, or `__align__(16)` in CUDA C++. */
  readonly align?: number
}

const optionKeys: OptionKeys<StructOptions> = { align: true }

interface LaidOutField extends StructField {
  readonly codec: FieldCodec
  readonly path: string
}

/**
 * Defines a plain-data struct for device memory elements and kernel arguments.
 *
 * The layout is that of a C compiler: every field is at the next multiple of its alignment, and the size is a multiple
 * of the largest alignment.
 *
 * @example
 * const Particle = defineStruct('Particle', { position: ['f32', 3], id: 'u64', alive: 'bool' })
 * Particle.bytes // 32
 * const bytes = Particle.encode({ position: [0, 0, 1], id: 7n, alive: true })
 *
 * @throws TypeError when a name is not a C identifier, a type is unknown, there is no field, or `align` is not a power
 * of two
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
    // Numeric names would also lose their order in the object.
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

class Struct extends Compound<'struct', StructValue<StructFields>> {
  readonly fields: readonly StructField[]

  constructor(name: string, bytes: number, alignment: number, laidOut: readonly LaidOutField[]) {
    super('struct', name, structCodec(name, bytes, alignment, laidOut))
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
}

function structCodec(
  structName: string,
  bytes: number,
  alignment: number,
  laidOut: readonly LaidOutField[],
): FieldCodec {
  const names = new Set(laidOut.map((field) => field.name))
  return {
    bytes,
    alignment,
    write(view, base, value, path) {
      if (typeof value !== 'object' || value === null) {
        throw new TypeError(`${path} must be an object with its fields, not ${describeValue(value)}`)
      }
      for (const name in value) {
        if (!names.has(name) && Object.hasOwn(value, name))
          throw new TypeError(`${path} must have only the fields of ${structName}, not '${name}'`)
      }
      const values = value as { readonly [name: string]: unknown }
      for (const field of laidOut) {
        const fieldPath = path === structName ? field.path : `${path}.${field.name}`
        if (values[field.name] === undefined) throw new TypeError(`${fieldPath} is missing`)
        field.codec.write(view, base + field.offset, values[field.name], fieldPath)
      }
    },
    read(view, base) {
      const out: { [name: string]: unknown } = {}
      for (const field of laidOut) out[field.name] = field.codec.read(view, base + field.offset)
      return out
    },
  }
}

function requireIdentifier(value: unknown, name: string): void {
  if (typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value) && value !== '__proto__') return
  throw wrongType('defineStruct', name, 'a C identifier', value)
}

function requireAlignment(align: unknown = 1): number {
  if (typeof align === 'number' && align >= 1 && align <= 4096 && Number.isInteger(Math.log2(align))) return align
  throw wrongType('defineStruct', 'align', 'a power of two from 1 to 4096', align)
}
