// Layouts that are deliberately wrong.

import type { FieldSpec, FieldType, LibrarySpecFile, StructSpec } from '../spec/types.js'
import { structsByName } from './abi.js'
import type { Codec, Ffi } from './packages.js'

type Break = (entry: StructSpec) => StructSpec | undefined

function withField(entry: StructSpec, index: number, change: Partial<FieldSpec>): StructSpec {
  const field = entry.fields[index]
  return field === undefined ? entry : { ...entry, fields: entry.fields.with(index, { ...field, ...change }) }
}

function withKind(from: (type: FieldType) => boolean, to: FieldType): Break {
  return (entry) => {
    const index = entry.fields.findIndex(({ type, count }) => count === undefined && from(type))
    return index < 0 ? undefined : withField(entry, index, { type: to })
  }
}

const breaks: readonly (readonly [string, Break])[] = [
  [
    'an offset',
    (entry) => {
      const index = entry.fields.findIndex(({ offset, size }) => offset > 0 && size > 1)
      return entry.union || index < 0
        ? undefined
        : withField(entry, index, { offset: (entry.fields[index]?.offset ?? 0) - 1 })
    },
  ],
  ['a size', (entry) => (entry.size > 8 ? { ...entry, size: entry.size + entry.alignment } : undefined)],
  ['a signedness', withKind(({ kind }) => kind === 'u32', { kind: 'i32' })],
  ['a width', withKind(({ kind }) => kind === 'u64' || kind === 'pointer', { kind: 'u32' })],
  [
    'a length of an array',
    (entry) => {
      const index = entry.fields.findIndex(({ count }) => count !== undefined && count > 1)
      return index < 0 ? undefined : withField(entry, index, { count: (entry.fields[index]?.count ?? 0) - 1 })
    },
  ],
  [
    'a field',
    (entry) => (entry.union || entry.fields.length < 2 ? undefined : { ...entry, fields: entry.fields.slice(0, -1) }),
  ],
]

/**
 * Returns a spec with one struct broken in each way. Only structs that no other struct contains are broken, so that
 * others stay correct.
 */
export function breakLayouts(spec: LibrarySpecFile): { layouts: LibrarySpecFile; broken: Map<string, string> } {
  const nested = new Set(
    spec.structs.flatMap(({ fields }) => fields.map(({ type }) => (type.kind === 'struct' ? type.type : ''))),
  )
  const broken = new Map<string, string>()
  const wrong = new Map<string, StructSpec>()
  for (const [what, apply] of breaks) {
    for (const entry of spec.structs) {
      const changed = nested.has(entry.name) || broken.has(entry.name) ? undefined : apply(entry)
      if (changed === undefined) continue
      broken.set(entry.name, what)
      wrong.set(entry.name, changed)
      break
    }
  }
  return { layouts: { ...spec, structs: spec.structs.map((entry) => wrong.get(entry.name) ?? entry) }, broken }
}

/** Creates codecs directly from a spec. */
export function codecsOf(ffi: Ffi, spec: LibrarySpecFile): Map<string, Codec> {
  const structs = structsByName(spec)
  const codecs = new Map<string, Codec>()
  const make = (name: string): Codec => {
    const known = codecs.get(name)
    if (known !== undefined) return known
    const entry = structs.get(name)
    if (entry === undefined) throw new Error(`${name} is not in the spec`)
    const codec = ffi.defineStructCodec({
      name,
      size: entry.size,
      alignment: entry.alignment,
      fields: entry.fields.map(({ name: field, offset, type, count }) => ({
        name: field,
        offset,
        kind: type.kind === 'struct' ? make(type.type) : primitiveOf(type),
        ...(count === undefined ? {} : { count }),
      })),
    })
    codecs.set(name, codec)
    return codec
  }
  for (const { name } of spec.structs) make(name)
  return codecs
}

function primitiveOf(type: FieldType): string {
  if (type.kind === 'enum') return type.signed ? 'i32' : 'u32'
  return ['handle', 'callback', 'deviceptr'].includes(type.kind) ? 'pointer' : type.kind
}
