import { describe, expect, test } from 'vitest'
import { firstSizes, fixedSizes } from '../src/facts/arrays.js'
import type { FunctionSpec, LibrarySpecFile, Lowered } from '../src/spec/types.js'
import { everyAbiPrelude, noMatchingHeaders, prelude, runCxx } from './environment.js'
import { specs } from './proof.js'

// Compares how the generator passes each C type with g++'s view of the type. The recorder of the marshalling proof is
// made from the same kinds, so an error in the spec would be on both sides there.

const classify = `
#include <cstddef>
#include <cstdio>
#include <type_traits>
template <class T> constexpr size_t behind() {
  if constexpr (std::is_pointer_v<T>) {
    using P = std::remove_pointer_t<T>;
    if constexpr (std::is_object_v<P> && requires { sizeof(P); }) return sizeof(P);
  }
  return 0;
}
template <class T> static void show(int row) {
  using D = std::decay_t<T>;
  const char* kind = std::is_void_v<D> ? "void"
    : std::is_same_v<D, bool> ? "bool"
    : std::is_pointer_v<D> ? (std::is_function_v<std::remove_pointer_t<D>> ? "function" : "pointer")
    : std::is_enum_v<D> ? "enum"
    : std::is_floating_point_v<D> ? "float"
    : std::is_integral_v<D> ? (std::is_signed_v<D> ? "signed" : "unsigned")
    : std::is_trivially_copyable_v<D> ? "class" : "class-by-address";
  size_t size = 0, alignment = 0;
  if constexpr (!std::is_void_v<D>) { size = sizeof(D); alignment = alignof(D); }
  std::printf("%d %s %zu %zu %zu %d\\n", row, kind, size, alignment, behind<D>(), std::is_same_v<D, const char*>);
}
`

interface Use {
  where: string
  ctype: string
  lowered: Lowered
  /** bytes that the generator requires behind a pointer */
  pointee: number | undefined
}

/** All uses of C types in functions. */
function usesOf(functions: readonly FunctionSpec[]): Use[] {
  return functions.flatMap(({ name, symbol, result, resultCtype, parameters }) => [
    { where: `the result of ${name}`, ctype: resultCtype, lowered: result, pointee: undefined },
    ...parameters.map((parameter) => {
      const isFixed = fixedSizes[`${symbol}.${parameter.name}`] ?? fixedSizes[`${name}.${parameter.name}`]
      const { ctype, lowered, pointee } = parameter
      const hasOwnSize = isFixed !== undefined || Object.keys(firstSizes).some((type) => ctype.includes(type))
      return { where: `${name}.${parameter.name}`, ctype, lowered, pointee: hasOwnSize ? undefined : pointee?.size }
    }),
  ])
}

/** True if g++'s description of a type fits the way it is passed. */
function isRight({ ctype, lowered }: Use, kind: string, size: number, alignment: number, isText: boolean): boolean {
  switch (lowered.kind) {
    case 'void':
      return kind === 'void'
    case 'bool':
      return kind === 'bool' && size === 1
    case 'enum':
      return kind === 'enum' && size === 4
    case 'float':
      return kind === 'float' && size === (lowered.type === 'f32' ? 4 : 8)
    case 'size':
      return kind === 'unsigned' && size === 8
    case 'integer': {
      // CUDA's 16-bit floats are classes with one unsigned short, and are passed like it.
      if (kind === 'class' && /\b(half|__nv_bfloat16)\b/.test(ctype)) return size === 2 && lowered.type === 'u16'
      const isSigned = lowered.type.startsWith('i')
      return kind === (isSigned ? 'signed' : 'unsigned') && size * 8 === Number(lowered.type.slice(1))
    }
    case 'deviceptr':
      return kind === 'unsigned' && size === 8
    case 'handle':
      return (kind === 'pointer' || kind === 'unsigned') && size === 8
    case 'callback':
      return kind === 'function'
    case 'cstring':
      return kind === 'pointer' && isText
    case 'pointer':
      return (kind === 'pointer' || kind === 'function') && size === 8
    case 'struct':
      return kind === 'class' && size === lowered.size && alignment === lowered.alignment
  }
}

/** All uses that g++ disagrees with, and the number of checked uses. */
function disagreements(uses: readonly Use[], includes: string): string[] {
  const types = [...new Set(uses.map(({ ctype }) => ctype))]
  const lines = types.map((ctype, row) => `  { using T = ${ctype}; show<T>(${row}); }`)
  const output = runCxx(`${includes}${classify}int main() {\n${lines.join('\n')}\n}\n`, ['-std=c++20'])
  const answers = output
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
  expect(answers).toHaveLength(types.length)
  const byType = new Map(types.map((ctype, row) => [ctype, answers[row] as string[]]))
  return uses.flatMap((use) => {
    const { where, ctype, lowered, pointee } = use
    const [, kind = '', size, alignment, behind, isText] = byType.get(ctype) as string[]
    const found = `${kind} of ${size} bytes`
    if (!isRight(use, kind, Number(size), Number(alignment), isText === '1'))
      return [`${where}: ${ctype} is a ${found}, not ${JSON.stringify(lowered)}`]
    if (pointee !== undefined && pointee !== Number(behind))
      return [`${where}: behind ${ctype} are ${behind} bytes, not ${pointee}`]
    return []
  })
}

function allDisagreements(spec: LibrarySpecFile): string[] {
  const earlier = spec.functions.filter(({ supersededBy }) => supersededBy !== undefined)
  const current = spec.functions.filter(({ supersededBy }) => supersededBy === undefined)
  return [
    ...disagreements(usesOf(current), prelude[spec.library]),
    ...(earlier.length > 0
      ? disagreements(usesOf(earlier), spec.library === 'driver' ? everyAbiPrelude : prelude[spec.library])
      : []),
  ]
}

describe.each(specs.map((spec) => [spec.library, spec] as const))('lowering of %s', (library, spec) => {
  const reason = noMatchingHeaders(library)

  test('uses the kind that g++ has for the type of every parameter and result', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    expect(allDisagreements(spec)).toEqual([])
  })

  test('reports wrong kinds', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const wrong: Lowered[] = [{ kind: 'integer', type: 'i16' }, { kind: 'float', type: 'f64' }, { kind: 'bool' }]
    const functions = spec.functions
      .filter(({ parameters, supersededBy }) => parameters.length > 0 && supersededBy === undefined)
      .slice(0, wrong.length)
      .map((entry, index) => ({
        ...entry,
        parameters: entry.parameters.with(0, { ...entry.parameters[0], lowered: wrong[index] } as never),
      }))
    const reported = disagreements(usesOf(functions), prelude[library]).map((text) => text.split(':')[0])
    expect(reported).toEqual(functions.map(({ name, parameters }) => `${name}.${parameters[0]?.name}`))
  })
})
