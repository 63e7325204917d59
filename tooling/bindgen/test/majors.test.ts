import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LibrarySpecFile, Lowered, StructSpec } from '../src/spec/types.js'
import { readSpec, root } from './environment.js'

// abi/libcudart-*.shapes.txt describes a release's headers: how each function passes its arguments, and the offsets of
// record members. A line is `symbol result(arguments)` or `struct name size: member@offset+size`. A member has the
// suffix `=name` if it is a record, and `=name*` if it points to a record.

interface Member {
  offset: number
  size: number
  /** the member's record, with an asterisk for a pointer */
  record: string | undefined
}

interface RecordShape {
  size: number
  members: Map<string, Member>
}

interface Shapes {
  functions: Map<string, string>
  records: Map<string, RecordShape>
}

const abi = (file: string) =>
  readFileSync(join(root, 'tooling/bindgen/abi', file), 'utf8')
    .trim()
    .split('\n')

function readShapes(lines: readonly string[]): Shapes {
  const shapes: Shapes = { functions: new Map(), records: new Map() }
  for (const line of lines) {
    const record = /^(?:struct|union) (\w+) (\d+): (.*)$/.exec(line)
    if (record === null) {
      const [symbol, shape] = line.split(' ') as [string, string]
      shapes.functions.set(symbol, shape)
      continue
    }
    const members = [...(record[3] as string).matchAll(/(\w+)@(\d+)\+(\d+)(?:=(\w+\*?))?/g)].map(
      ([, name, offset, size, type]): [string, Member] => [
        name as string,
        { offset: Number(offset), size: Number(size), record: type },
      ],
    )
    shapes.records.set(record[1] as string, { size: Number(record[2]), members: new Map(members) })
  }
  return shapes
}

const pointeeName = (ctype: string) =>
  ctype
    .replace(/\b(const|struct|union|enum|__restrict__)\b/g, '')
    .replace(/[\s*]+$/, '')
    .trim()

/** The shapes of a spec, in the format of the files. */
function shapesOf(spec: LibrarySpecFile): Shapes {
  const record = (name: string): StructSpec | undefined =>
    spec.structs.find((entry) => entry.name === name || entry.aliases.includes(name))
  const pointed = (ctype: string) => (ctype.includes('*') ? record(pointeeName(ctype)) : undefined)
  const shapeOf = (lowered: Lowered): string => {
    if (lowered.kind === 'enum') return lowered.signed ? 'i32' : 'u32'
    if (lowered.kind === 'size') return 'u64'
    if (lowered.kind === 'bool') return 'u8'
    if (lowered.kind === 'integer' || lowered.kind === 'float') return lowered.type
    if (lowered.kind === 'struct') return `${lowered.type}{${lowered.size}}`
    return lowered.kind === 'void' ? 'void' : 'p'
  }
  const functions = spec.functions.map(({ symbol, result, parameters }): [string, string] => {
    const list = parameters.map(({ ctype, lowered }) => {
      const target = lowered.kind === 'struct' ? undefined : pointed(ctype)
      return target ? `${target.name}*` : shapeOf(lowered)
    })
    return [symbol, `${shapeOf(result)}(${list.join(',')})`]
  })
  const records = spec.structs.map(({ name, size, fields }): [string, RecordShape] => {
    const members = fields.map(({ name: member, offset, size: each, count, type, ctype }): [string, Member] => {
      const target = pointed(ctype)
      const of = type.kind === 'struct' ? type.type : target && `${target.name}*`
      return [member, { offset, size: each * (count ?? 1), record: of }]
    })
    return [name, { size, members: new Map(members) }]
  })
  return { functions: new Map(functions), records: new Map(records) }
}

/**
 * True if memory laid out for one version is valid for the other, in both directions. All members that both know have
 * equal offsets, no member is gone, and the newer record is not smaller.
 */
function fits(name: string, older: Shapes, newer: Shapes, seen = new Set<string>()): boolean {
  const [before, after] = [older.records.get(name), newer.records.get(name)]
  if (before === undefined || after === undefined || seen.has(name)) return true
  seen.add(name)
  if (before.size > after.size) return false
  for (const [member, { offset, record }] of before.members) {
    const now = after.members.get(member)
    if (member === 'reserved') continue
    if (now?.offset !== offset || now.record !== record) return false
    if (record !== undefined && !fits(record.replace('*', ''), older, newer, seen)) return false
    // In an array, elements are as far apart as their size.
    if (
      record?.endsWith('*') &&
      older.records.get(record.slice(0, -1))?.size !== newer.records.get(record.slice(0, -1))?.size
    )
      return false
  }
  return true
}

/** Exports of the older library that must not be called with the newer headers' signature. */
function differing(exported: ReadonlySet<string>, older: Shapes, newer: Shapes): string[] {
  return [...newer.functions]
    .filter(([symbol, shape]) => {
      if (!exported.has(symbol)) return false
      const before = older.functions.get(symbol)
      // An export for old programs. The headers of its own version use another symbol for this name.
      if (before === undefined) return true
      // A pointer to a record that only one of the two knows counts as a plain pointer.
      const known = (text: string) =>
        text.replace(/(\w+)\*/g, (_, name: string) =>
          older.records.has(name) && newer.records.has(name) ? `${name}*` : 'p',
        )
      if (known(before) !== known(shape)) return true
      return [...shape.matchAll(/(\w+)\*|(\w+)\{/g)].some(([, a, b]) => !fits((a ?? b) as string, older, newer))
    })
    .map(([symbol]) => symbol)
}

const releases = [
  { release: '11.8', major: 11, version: 11080 },
  { release: '12.5', major: 12, version: 12050 },
]

describe.each(releases)('libcudart $release', ({ release, major, version }) => {
  const spec = readSpec('runtime')
  const exported = new Set(abi(`libcudart-${release}.symbols.txt`))
  const older = readShapes(abi(`libcudart-${release}.shapes.txt`))
  const newer = shapesOf(spec)

  test('refuses exactly the functions whose arguments or records differ', () => {
    const refused = spec.functions
      .filter(({ otherMajors, versions }) => otherMajors?.includes(major) && Math.min(...versions) <= version)
      .map(({ symbol }) => symbol)
    expect(refused.length).toBeGreaterThan(10)
    expect(differing(exported, older, newer).sort()).toEqual(refused.sort())
  })

  test('detects another argument, another offset or another size', () => {
    const functions = new Map(older.functions).set('cudaMalloc', 'i32(p,u32)')
    expect(differing(exported, { ...older, functions }, newer)).toContain('cudaMalloc')
    const pitched = older.records.get('cudaPitchedPtr') as RecordShape
    const members = new Map(pitched.members).set('pitch', { offset: 16, size: 8, record: undefined })
    const moved = new Map(older.records).set('cudaPitchedPtr', { ...pitched, members })
    expect(differing(exported, { ...older, records: moved }, newer)).toContain('cudaMalloc3D')
    const grown = new Map(older.records).set('cudaMemcpy3DParms', {
      ...(older.records.get('cudaMemcpy3DParms') as RecordShape),
      size: 4096,
    })
    expect(differing(exported, { ...older, records: grown }, newer)).toContain('cudaMemcpy3D')
  })
})
