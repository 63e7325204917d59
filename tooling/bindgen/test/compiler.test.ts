import { describe, expect, test } from 'vitest'
import { type Place, placesOf } from '../src/proof/leaves.js'
import type { FunctionSpec, LibrarySpecFile, StructSpec } from '../src/spec/types.js'
import {
  everyAbiPrelude,
  headerText,
  libraryNames,
  noMatchingHeaders,
  nvmlEveryAbiPrelude,
  prelude,
  readSpec,
  runCxx,
} from './environment.js'

// The generator uses clang in C. This test independently asks g++ in C++ about the same headers.

function measuredLayouts(
  spec: LibrarySpecFile,
  structs: readonly StructSpec[],
  includes: string,
): Map<string, number[]> {
  const where = placesOf(spec)
  const lines: string[] = []
  for (const entry of structs) {
    const { owner, path } = where.get(entry.name) as Place
    const type = path === '' ? owner : `std::remove_reference_t<decltype(std::declval<${owner}&>().${path})>`
    const origin = path === '' ? '0' : `__builtin_offsetof(${owner}, ${path})`
    const offsets = entry.fields.map(
      (field) => `__builtin_offsetof(${owner}, ${path === '' ? '' : `${path}.`}${field.name}) - (${origin})`,
    )
    const values = entry.fields.map((field) => `((${owner}*)0)->${path === '' ? '' : `${path}.`}${field.name}`)
    const sizes = values.map((value) => `sizeof(${value})`)
    const kinds = values.map((value) => `kindOf<decltype(${value})>()`)
    lines.push(
      `  show("${entry.name}", { sizeof(${type}), alignof(${type}), ${[...offsets, ...sizes, ...kinds].map((text) => `(size_t)(${text})`).join(', ')} });`,
    )
  }
  const output = runCxx(`${includes}
#include <cstdio>
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>
template <class Field> constexpr size_t kindOf() {
  using T = std::remove_all_extents_t<Field>;
  if (std::is_same_v<T, bool>) return 0;
  if (std::is_integral_v<T>) return std::is_signed_v<T> ? 1 : 2;
  return std::is_floating_point_v<T> ? 3 : std::is_enum_v<T> ? 4 : std::is_pointer_v<T> ? 5 : 6;
}
static void show(const char* name, std::initializer_list<size_t> values) {
  std::printf("%s", name);
  for (size_t value : values) std::printf(" %zu", value);
  std::printf("\\n");
}
int main() {
${lines.join('\n')}
}
`)
  return new Map(
    output
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([key, ...values]) => [key as string, values.map(Number)]),
  )
}

/** The possible answers of `kindOf` for a field. A handle is a pointer or a number. */
function kindsOf({ kind }: StructSpec['fields'][number]['type']): readonly number[] {
  if (kind === 'handle') return [2, 5]
  const named: Readonly<Record<string, number>> = { bool: 0, deviceptr: 2, enum: 4, pointer: 5, callback: 5, struct: 6 }
  return [named[kind] ?? { i: 1, u: 2, f: 3 }[kind[0] as 'i' | 'u' | 'f']]
}

function signatureOf({ resultCtype, parameters }: FunctionSpec): string {
  return `${resultCtype} (*)(${parameters.map(({ ctype }) => ctype).join(', ')})`
}

/** A C++ check that a function has the type of its prototype in the spec. */
function prototype(entry: FunctionSpec, type = typeOf(entry)): string {
  return `static_assert(std::is_same<${type}, ${signatureOf(entry)}>::value, "${entry.symbol}");`
}

/** C++ has overloads of these functions. A static_cast selects one, and fails if the types differ. */
function typeOf(entry: FunctionSpec): string {
  return /^(ncclTeam|cublas(Gemm|[GS]etEmulationStrategy))/.test(entry.name)
    ? `decltype(static_cast<${signatureOf(entry)}>(&${entry.name}))`
    : `decltype(&${entry.name})`
}

function checks(includes: string, lines: readonly string[]): string {
  return runCxx(
    `${includes}#include <type_traits>\n#include <cstdio>\n${lines.join('\n')}\nint main() { std::puts("same"); }\n`,
  )
}

describe.each(libraryNames)('%s checked by g++', (name) => {
  const spec = readSpec(name)

  test('has the size, alignment and every field of every struct', ({ skip }) => {
    const reason = noMatchingHeaders(name)
    if (reason !== undefined) return skip(reason)
    if (spec.structs.length === 0)
      return expect(headerText(name, spec.headers[0] as string)).not.toMatch(/\btypedef\s+struct\s*\w*\s*\{/)
    const earlier = spec.structs.filter((entry) => entry.earlier)
    const measured = new Map([
      ...measuredLayouts(
        spec,
        spec.structs.filter((entry) => !entry.earlier),
        prelude[name],
      ),
      ...(earlier.length > 0 ? measuredLayouts(spec, earlier, everyAbiPrelude) : []),
    ])
    for (const entry of spec.structs) {
      const sizes = entry.fields.map((field) => field.size * (field.count ?? 1))
      const expected = [entry.size, entry.alignment, ...entry.fields.map((field) => field.offset), ...sizes]
      const found = measured.get(entry.name) ?? []
      expect(expected, entry.name).toEqual(found.slice(0, expected.length))
      for (const [index, field] of entry.fields.entries()) {
        expect(kindsOf(field.type), `${entry.name}.${field.name}`).toContain(found[expected.length + index])
      }
    }
    expect(measured.size).toBe(spec.structs.length)
  })

  test('has the value of every enumerator and constant', ({ skip }) => {
    const reason = noMatchingHeaders(name)
    if (reason !== undefined) return skip(reason)
    const members = spec.enums.flatMap((entry) => entry.members)
    const constants = spec.constants.map(({ name: key, value }) => [key, Number(value)] as const)
    const wanted = [...members, ...constants]
    const lines = wanted.map(([key]) => `  std::printf("%s %.17g\\n", "${key}", number(${key}));`)
    const output = runCxx(`${prelude[name]}
#include <climits>
#include <cstdint>
#include <cstdio>
template <class T> static double number(T value) {
  if constexpr (__is_enum(T)) return (double)(long long)value; else return (double)value;
}
template <class T> static double number(T* value) { return (double)(intptr_t)value; }
int main() {
${lines.join('\n')}
}
`)
    const measured = output
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([key, value]) => [key, Number(value)])
    expect(wanted.map(([key, value]) => [key, value])).toEqual(measured)
  })

  test('has the prototype of every function', ({ skip }) => {
    const reason = noMatchingHeaders(name)
    if (reason !== undefined) return skip(reason)
    const current = spec.functions.filter((entry) => entry.supersededBy === undefined && entry.undeclared === undefined)
    expect(
      checks(
        prelude[name],
        current.map((entry) => prototype(entry)),
      ),
    ).toBe('same\n')
  })

  test('detects a wrong prototype', ({ skip }) => {
    const reason = noMatchingHeaders(name)
    if (reason !== undefined) return skip(reason)
    const entry = spec.functions.find(({ parameters }) => parameters.length > 2) as FunctionSpec
    const broken = { ...entry, parameters: entry.parameters.slice(1) }
    expect(() => checks(prelude[name], [prototype(broken)])).toThrow(new RegExp(`"?${entry.symbol}`))
  })
})

test('g++ detects a wrong prototype of a function with C++ overloads', ({ skip }) => {
  const reason = noMatchingHeaders('nccl')
  if (reason !== undefined) return skip(reason)
  const entry = readSpec('nccl').functions.find(({ name }) => name === 'ncclTeamRankToWorld') as FunctionSpec
  const broken = { ...entry, parameters: entry.parameters.slice(1) }
  expect(() => checks(prelude.nccl, [prototype(broken)])).toThrow(/ncclTeamRankToWorld/)
})

test('every ABI of NVML has the prototype of the spec for its symbol', ({ skip }) => {
  const reason = noMatchingHeaders('nvml')
  if (reason !== undefined) return skip(reason)
  const lines = readSpec('nvml').functions.map((entry) => prototype(entry, `decltype(&${entry.symbol})`))
  expect(checks(nvmlEveryAbiPrelude, lines)).toBe('same\n')
})

describe('ABIs of the driver checked by g++', () => {
  const { functions } = readSpec('driver')
  const reason = noMatchingHeaders('driver')

  test('have the prototype of the spec for each symbol, including superseded ones', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    expect(functions.filter(({ supersededBy }) => supersededBy !== undefined).length).toBeGreaterThan(80)
    const lines = functions.flatMap((entry) => [
      prototype(entry, `decltype(&${entry.symbol})`),
      ...(entry.perThreadSymbol ? [prototype(entry, `decltype(&${entry.perThreadSymbol})`)] : []),
    ])
    expect(checks(everyAbiPrelude, lines)).toBe('same\n')
  })

  test('have the function type that the headers name after their version', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const lines = functions.flatMap((entry) => {
      const { lookup, since, perThreadSymbol, perThreadSince } = entry
      const variant = perThreadSymbol?.slice(-5)
      return [
        prototype(entry, `PFN_${lookup}_v${since}`),
        ...(variant ? [prototype(entry, `PFN_${lookup}_v${perThreadSince}${variant}`)] : []),
      ]
    })
    expect(checks(everyAbiPrelude, lines)).toBe('same\n')
  })

  test('detect a version that belongs to another ABI', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const entry = functions.find(({ name }) => name === 'cuCtxCreate_v3020') as FunctionSpec
    expect(() => checks(everyAbiPrelude, [prototype(entry, 'PFN_cuCtxCreate_v11040')])).toThrow(/cuCtxCreate_v2/)
  })
})
