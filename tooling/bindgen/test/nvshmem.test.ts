import { describe, expect, test } from 'vitest'
import { expandPattern } from '../src/parse/families.js'
import type { FunctionSpec, LibrarySpecFile } from '../src/spec/types.js'
import { headers, noMatchingHeaders, prelude, preprocessCxx, readExported, readSpec, runCxx } from './environment.js'

const spec = readSpec('nvshmem')
const families = spec.families ?? []
const typeSets = spec.typeSets ?? []
const unbound = spec.unbound ?? []
const byName = new Map(spec.functions.map((entry) => [entry.name, entry]))

const exported = readExported('nvshmem')

/** All names in the table: families × types, sizes and bytes. */
function tabled({ families: rows = [], typeSets: sets = [] }: LibrarySpecFile): string[] {
  return rows.flatMap(({ patterns }) => patterns.flatMap((row) => expandPattern(row.pattern, row.sets, sets)))
}

/** Compares the table, the other functions and the unbound names with the exports of the library. */
function compare(of: LibrarySpecFile) {
  const single = of.functions.filter(({ family }) => family === undefined).map(({ name }) => name)
  const kept = (of.unbound ?? []).filter((entry) => entry.exported).map(({ symbol }) => symbol)
  // Functions newer than the listed library are not expected in the list.
  const late = new Set(of.functions.filter(({ since }) => since > of.exports.version).map(({ name }) => name))
  const all = [...tabled(of), ...single, ...kept].filter((name) => !late.has(name))
  const known = new Set(all)
  return {
    twice: all.filter((name, index) => all.indexOf(name) !== index),
    notExported: all.filter((name) => !exported.has(name)),
    notTold: [...exported].filter((name) => !known.has(name)),
  }
}

/** The names that match an entry in the list of unbound symbols. */
function namesOf(symbol: string): string[] {
  const columns = [...new Set(typeSets.flatMap(({ types }) => types.map(([name]) => name)))]
  const isSize = (name: string) => /^\d+$/.test(name)
  if (symbol.includes('{bits}')) return columns.filter(isSize).map((name) => symbol.replace('{bits}', name))
  if (!symbol.includes('{type}')) return [symbol]
  return columns.filter((name) => !isSize(name)).map((name) => symbol.replace('{type}', name))
}

describe('the table of NVSHMEM families and types', () => {
  test('matches the exports of the library in both directions', () => {
    expect(compare(spec)).toEqual({ twice: [], notExported: [], notTold: [] })
    expect(exported.size).toBeGreaterThanOrEqual(1485)
    // Most functions are in the table. The others are not repeated over types.
    expect(tabled(spec).length).toBeGreaterThan(1400)
    expect(spec.functions.filter(({ family }) => family === undefined).length).toBeLessThan(60)
  })

  test('detects an extra type, a missing family and a missing variable', () => {
    const fewer = typeSets.map((set) =>
      set.name === 'WAIT_TYPES' ? { ...set, types: set.types.filter(([name]) => name !== 'size') } : set,
    )
    expect(compare({ ...spec, typeSets: fewer }).notTold).toEqual([
      'nvshmemx_size_wait_until_all_on_stream',
      'nvshmemx_size_wait_until_all_vector_on_stream',
      'nvshmemx_size_wait_until_on_stream',
    ])
    const alltoalls = { name: 'alltoalls', patterns: [{ pattern: 'nvshmem_{type}_alltoalls', sets: ['EXTENDED_AMO'] }] }
    expect(compare({ ...spec, families: [...families, alltoalls] }).notExported).toEqual([
      'nvshmem_float_alltoalls',
      'nvshmem_double_alltoalls',
    ])
    const withoutOptions = unbound.filter(({ symbol }) => symbol !== 'nvshmem_options')
    expect(compare({ ...spec, unbound: withoutOptions }).notTold).toEqual(['nvshmem_options'])
  })

  test('assigns each function its family and its type', () => {
    for (const { name, patterns } of families) {
      for (const { pattern, sets } of patterns) {
        for (const each of expandPattern(pattern, sets, typeSets)) {
          const entry = byName.get(each) as FunctionSpec
          expect(entry.family, each).toBe(name)
          const column = /\{(type|bits)\}/.test(pattern)
            ? pattern.replace(/\{(type|bits)\}/, entry.type ?? '')
            : pattern
          expect(column).toBe(each)
        }
      }
    }
  })

  test('has the type lists of the manual', () => {
    const sizes = Object.fromEntries(typeSets.map(({ name, types }) => [name, types.length]))
    expect(sizes).toEqual({
      STANDARD_RMA_TYPES: 25,
      STANDARD_REDUCE_TYPES: 24,
      ARITH_REDUCE_TYPES: 24,
      BITWISE_REDUCE_TYPES: 14,
      WAIT_TYPES: 14,
      STANDARD_AMO: 5,
      BITWISE_AMO: 7,
      EXTENDED_AMO: 2,
      SIZES: 5,
    })
  })

  test("has parameters and results of the column's type", () => {
    for (const { name, types } of typeSets) {
      for (const [column, ctype] of types) {
        if (ctype === '') continue
        const row = spec.functions.filter((entry) => entry.type === column)
        expect(row.length, `${name} ${column}`).toBeGreaterThan(0)
        const words = new RegExp(`(^|[^\\w])${ctype.replaceAll(' ', '\\s+')}($|[^\\w])`)
        for (const { name: function_, resultCtype, parameters } of row)
          expect(
            [resultCtype, ...parameters.map((each) => each.ctype)].some((each) => words.test(each)),
            function_,
          ).toBe(true)
      }
    }
  })
})

describe('unbound NVSHMEM functions', () => {
  test('have a reason, and are bound in no package', () => {
    for (const { symbol, reason } of unbound) {
      expect(reason.length, symbol).toBeGreaterThan(20)
      expect(namesOf(symbol).filter((name) => byName.has(name))).toEqual([])
    }
  })

  test('are the host declarations missing in the library, by the preprocessor of g++', ({ skip }) => {
    const reason = noMatchingHeaders('nvshmem')
    if (reason !== undefined) return skip(reason)
    const text = preprocessCxx(prelude.nvshmem)
    const declared = new Set(
      [...text.matchAll(/\b(nvshmem(?:x|i|id)?_\w+)\s*\((?=[^;{}()]*\)\s*[;{])/g)].map(([, name]) => name as string),
    )
    expect(declared.size).toBeGreaterThan(2500)
    const explained = new Set(unbound.flatMap(({ symbol }) => namesOf(symbol)))
    const missing = [...declared].filter((name) => !byName.has(name) && !explained.has(name))
    // This pattern also matches calls in the bodies of inline functions, as if they were declarations.
    expect(missing).toEqual([])
    expect([...byName.keys()].filter((name) => !declared.has(name))).toEqual([])
    for (const replaced of ['nvshmem_init', 'nvshmem_finalize', 'nvshmemx_init_attr', 'nvshmemi_init_thread'])
      expect(explained, replaced).toContain(replaced)
  })
})

test('16-bit floats are passed as their unsigned short', ({ skip }) => {
  const reason = noMatchingHeaders('nvshmem')
  if (reason !== undefined) return skip(reason)
  expect(headers.nvshmem).toBeDefined()
  const program = `${prelude.nvshmem}
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
extern "C" half mirrorHalf(int before, half value, int after) { return before + 1 == after ? value : half(); }
extern "C" __nv_bfloat16 mirrorBfloat16(int before, __nv_bfloat16 value, int after) {
  return before + 1 == after ? value : __nv_bfloat16();
}
template <class T> void show(T (*mirror)(int, T, int)) {
  static_assert(sizeof(T) == 2 && std::is_trivially_copyable<T>::value, "one unsigned short");
  // Read back from memory, so that the compiler calls what it cannot see.
  void* volatile address = reinterpret_cast<void*>(mirror);
  auto call = reinterpret_cast<uint16_t (*)(int, uint16_t, int)>(address);
  for (uint16_t bits : { 0, 1, 0x3c00, 0x8001, 0xfc00, 0xffff }) std::printf("%x ", call(7, bits, 8) == bits);
}
int main() { show(&mirrorHalf); show(&mirrorBfloat16); }
`
  expect(runCxx(program)).toBe('1 '.repeat(12))
})

test('team handles are a distinct type', () => {
  const teams = spec.functions.flatMap(({ name, parameters }) =>
    parameters.filter(({ ctype }) => /^nvshmemx?_team_t$/.test(ctype)).map(({ lowered }) => ({ name, lowered })),
  )
  expect(teams.length).toBeGreaterThan(400)
  for (const { name, lowered } of teams)
    expect(lowered, name).toMatchObject({ kind: 'integer', brand: 'nvshmem_team_t' })
})
