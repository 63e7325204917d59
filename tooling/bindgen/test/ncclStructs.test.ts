import { describe, expect, test } from 'vitest'
import { clangVersion, dumpMacros } from '../src/parse/clang.js'
import { ncclSource } from '../src/parse/nccl.js'
import { readVersionedStructs } from '../src/parse/ncclStructs.js'
import type { StructSpec } from '../src/spec/types.js'
import { headers, noMatchingHeaders, readSpec, workspace } from './environment.js'

const spec = readSpec('nccl')
const byName = new Map(spec.structs.map((entry) => [entry.name, entry]))
const versioned = spec.versionedStructs ?? []
const place = ({ name, ctype, offset, size }: StructSpec['fields'][number]) => `${name} ${ctype} ${offset} ${size}`

test('a newer NCCL layout extends the previous layout of the same series', () => {
  expect(versioned.map(({ struct }) => struct)).toEqual([
    'ncclConfig_t',
    'ncclSimInfo_t',
    'ncclCommProperties',
    'ncclDevCommRequirements',
  ])
  for (const { struct, runs } of versioned) {
    const all = runs.flatMap(({ layouts }) => layouts)
    expect(all.at(-1)?.struct, struct).toBe(struct)
    expect(
      all.map(({ since }) => since),
      struct,
    ).toEqual([...new Set(all.map(({ since }) => since))].sort((a, b) => a - b))
    expect(all.at(-1)?.since, struct).toBeLessThanOrEqual(spec.headerVersion)
    for (const { layouts } of runs) {
      layouts.slice(1).forEach(({ struct: name }, index) => {
        const now = (byName.get(name) as StructSpec).fields.map(place)
        const before = (byName.get(layouts[index]?.struct ?? '') as StructSpec).fields.map(place)
        expect(now.length, name).toBeGreaterThan(before.length)
        expect(now.slice(0, before.length), name).toEqual(before)
      })
    }
  }
})

test('a struct exists no later than the first function that takes it', () => {
  const first: Record<string, string> = {
    ncclConfig_t: 'ncclCommInitRankConfig',
    ncclSimInfo_t: 'ncclGroupSimulateEnd',
    ncclCommProperties: 'ncclCommQueryProperties',
    ncclDevCommRequirements: 'ncclDevCommCreate',
  }
  for (const { struct, runs } of versioned) {
    const since = spec.functions.find(({ name }) => name === first[struct])?.since
    expect(runs[0]?.layouts[0]?.since, struct).toBe(since)
  }
})

describe('the NCCL header compared with the layouts of the spec', () => {
  const unit = { source: ncclSource, includes: [headers.nccl as string, headers.cuda as string] }
  const reason = clangVersion() === undefined ? 'no clang' : noMatchingHeaders('nccl')
  const current = spec.structs.filter(({ name }) => !/_v\d{5}$/.test(name))
  /** The spec from before ncclConfig_t got its last field. */
  const shorter = {
    ...spec,
    structs: spec.structs.map((entry) =>
      entry.name === 'ncclConfig_t' ? { ...entry, fields: entry.fields.slice(0, -1) } : entry,
    ),
  }
  const macros = reason === undefined ? dumpMacros(unit) : new Map<string, string>()

  test('leaves the spec unchanged if layouts are equal', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    expect(readVersionedStructs(unit, macros, current, workspace.history(spec))).toEqual({
      structs: spec.structs,
      versionedStructs: versioned,
    })
  })

  test('stops the generator on another layout, unless a version is added', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const read = (added?: number) => readVersionedStructs(unit, macros, current, workspace.history(shorter, added))
    expect(() => read()).toThrow(/the spec says that ncclConfig_t has .*; the header says .*graphStreamOrdering/)
    const { structs, versionedStructs } = read(23100)
    const last = versionedStructs[0]?.runs[0]?.layouts.slice(-2)
    expect(last).toEqual([
      { since: 23005, struct: 'ncclConfig_v23005' },
      { since: 23100, struct: 'ncclConfig_t' },
    ])
    expect(structs.find(({ name }) => name === 'ncclConfig_v23005')?.fields.at(-1)?.name).toBe('maxP2pPeers')
  })

  test('stops the generator if an initialiser was removed', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const without = new Map([...macros].filter(([name]) => name !== 'NCCL_CONFIG_INITIALIZER'))
    expect(() => readVersionedStructs(unit, without, current, workspace.history(spec))).toThrow(
      /no ncclConfig_t or no NCCL_CONFIG_INITIALIZER/,
    )
  })
})
