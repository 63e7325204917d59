// The scalar fields of a struct at any depth, and random values for them.

import type { FieldSpec, FieldType, LibrarySpecFile, StructSpec } from '../spec/types.js'
import { structsByName } from './abi.js'
import type { Random } from './random.js'
import { floatEdges, readScalar, type ScalarKind, scalarKind } from './scalars.js'

/** A scalar field at any depth, with its paths in C++ and JavaScript. */
export interface Leaf {
  /** The C++ expression after the object: `.res.array.hArray` */
  readonly expression: string
  readonly path: readonly (string | number)[]
  readonly type: FieldType
  readonly count?: number
  /** size of one element in bytes */
  readonly elementBytes: number
}

/** How to reach a struct from a type with a C name. */
export interface Place {
  readonly owner: string
  readonly path: string
}

/** The C++ path to each struct. An anonymous nested struct is reached through its field. */
export function placesOf(spec: LibrarySpecFile): Map<string, Place> {
  const byName = structsByName(spec)
  const found = new Map<string, Place>()
  const walk = (entry: StructSpec, place: Place): void => {
    if (found.has(entry.name)) return
    found.set(entry.name, place)
    for (const field of entry.fields) {
      if (field.type.kind !== 'struct') continue
      const nested = byName.get(field.type.type)
      if (nested === undefined || nested.ctype) continue
      const step = `${field.name}${field.count === undefined ? '' : '[0]'}`
      walk(nested, { owner: place.owner, path: place.path === '' ? step : `${place.path}.${step}` })
    }
  }
  for (const entry of spec.structs) if (entry.ctype) walk(entry, { owner: entry.ctype, path: '' })
  return found
}

/** The C++ type at a place. */
export function typeAt({ owner, path }: Place): string {
  return path === '' ? owner : `std::remove_reference_t<decltype(std::declval<${owner}&>().${path})>`
}

/** Sets of leaves to fill a struct with. Each set has one member of every union; together they have all members. */
export function leafSets(structs: ReadonlyMap<string, StructSpec>, name: string): Leaf[][] {
  const entry = structs.get(name)
  if (entry === undefined) throw new Error(`${name} is not in the spec`)
  const byField = entry.fields.map((field): Leaf[][] => {
    const { type, count } = field
    if (type.kind !== 'struct') {
      const leaf = { expression: `.${field.name}`, path: [field.name], type, elementBytes: field.size }
      return [[count === undefined ? leaf : { ...leaf, count }]]
    }
    return leafSets(structs, type.type).map((leaves) => {
      if (count === undefined) return leaves.map((leaf) => below(leaf, `.${field.name}`, [field.name]))
      return Array.from({ length: count }, (_, index) =>
        leaves.map((leaf) => below(leaf, `.${field.name}[${index}]`, [field.name, index])),
      ).flat()
    })
  })
  const groups = overlapping(entry).map((fields) => fields.flatMap((index) => byField[index] ?? []))
  const count = Math.max(1, ...groups.map((sets) => sets.length))
  return Array.from({ length: count }, (_, index) => groups.flatMap((sets) => sets[index % sets.length] ?? []))
}

/** Indices of the fields, grouped by shared memory: members of a named or anonymous union. */
function overlapping({ fields }: StructSpec): number[][] {
  const order = [...fields.keys()].sort((a, b) => (fields[a]?.offset ?? 0) - (fields[b]?.offset ?? 0))
  const groups: number[][] = []
  let end = 0
  for (const index of order) {
    const { offset, size, count } = fields[index] as FieldSpec
    const last = groups.at(-1)
    if (last !== undefined && offset < end) last.push(index)
    else groups.push([index])
    end = Math.max(end, offset + size * (count ?? 1))
  }
  return groups
}

function below(leaf: Leaf, expression: string, path: readonly (string | number)[]): Leaf {
  return { ...leaf, expression: expression + leaf.expression, path: [...path, ...leaf.path] }
}

function oneValue(kind: ScalarKind, random: Random): unknown {
  if (kind === 'bool') return random.below(2) === 1
  if (kind === 'f32')
    return random.below(2) === 0 ? Math.fround(random.pick(floatEdges)) : Math.fround(random.u32() / 7)
  if (kind === 'f64') return random.below(2) === 0 ? random.pick(floatEdges) : random.u32() / 7
  const bits = Number(kind.slice(1))
  const half = 2n ** BigInt(bits - 1)
  const raw = random.below(3) === 0 ? random.pick([0n, 1n, -1n, half, half - 1n]) : random.u64()
  const value = kind.startsWith('u') ? BigInt.asUintN(bits, raw) : BigInt.asIntN(bits, raw)
  return bits === 64 ? value : Number(value)
}

/** A random value for the codec, sometimes an extreme one. */
export function randomValue({ type, count }: Leaf, random: Random): unknown {
  const kind = scalarKind(type)
  if (count === undefined) return oneValue(kind, random)
  // Bytes are 0 … 255, even if C calls them signed.
  if (kind === 'i8' || kind === 'u8') return random.bytes(count)
  return Array.from({ length: count }, () => oneValue(kind, random))
}

/** Converts the bytes of a field to its JavaScript value. */
export function valueOfBytes({ type, count, elementBytes }: Leaf, bytes: Uint8Array): unknown {
  const kind = scalarKind(type)
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (count === undefined) return readScalar(data, 0, kind)
  if (kind === 'i8' || kind === 'u8') return new Uint8Array(bytes)
  return Array.from({ length: count }, (_, index) => readScalar(data, index * elementBytes, kind))
}

/** Builds an object with a value at each path. */
export function objectOf(values: readonly (readonly [Leaf, unknown])[]): Record<string, unknown> {
  const root: Record<string | number, unknown> = {}
  for (const [{ path }, value] of values) {
    let at = root
    path.slice(0, -1).forEach((step, index) => {
      at[step] ??= typeof path[index + 1] === 'number' ? [] : {}
      at = at[step] as Record<string | number, unknown>
    })
    at[path.at(-1) as string] = value
  }
  return root
}

export function valueAt(root: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((at, step) => (at as Record<string | number, unknown> | undefined)?.[step], root)
}
