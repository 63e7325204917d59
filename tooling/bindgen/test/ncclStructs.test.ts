import { expect, test } from 'vitest'
import { clangVersion, dumpMacros } from '../src/parse/clang.js'
import { ncclSource } from '../src/parse/nccl.js'
import { readVersionedStructs } from '../src/parse/ncclStructs.js'
import type { StructSpec } from '../src/spec/types.js'
import { headers, noMatchingHeaders, readSpec } from './environment.js'

const spec = readSpec('nccl')
const byName = new Map(spec.structs.map((entry) => [entry.name, entry]))
const versioned = spec.versionedStructs ?? []
const place = ({ name, ctype, offset, size }: StructSpec['fields'][number]) => `${name} ${ctype} ${offset} ${size}`

test('a layout begins with the one before, of the same run, and has more', () => {
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

test('a struct is there before, or with, the first function that takes it', () => {
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

test('facts that the header contradicts stop the generator', ({ skip }) => {
  const reason = clangVersion() === undefined ? 'no clang' : noMatchingHeaders('nccl')
  if (reason !== undefined) return skip(reason)
  const unit = { source: ncclSource, includes: [headers.nccl as string, headers.cuda as string] }
  const macros = dumpMacros(unit)
  expect(readVersionedStructs(unit, macros, spec.structs)).toEqual(versioned)
  const shorter = spec.structs.map((entry) =>
    entry.name === 'ncclConfig_t' ? { ...entry, fields: entry.fields.slice(0, -1) } : entry,
  )
  expect(() => readVersionedStructs(unit, macros, shorter)).toThrow(
    /the facts say that ncclConfig_t has .*graphStreamOrdering/,
  )
  macros.delete('NCCL_CONFIG_INITIALIZER')
  expect(() => readVersionedStructs(unit, macros, spec.structs)).toThrow(
    /no ncclConfig_t or no NCCL_CONFIG_INITIALIZER/,
  )
})
