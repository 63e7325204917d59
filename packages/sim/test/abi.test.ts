import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findHeaders } from '../../../tooling/bindgen/dist/parse/headers.js'
import { buildFolder, compile, nativeFolder, readFacts } from './build.js'

const { cuda, nccl, nvshmem } = findHeaders({})

const noToolkit = 'no CUDA toolkit on this machine: set CUDA_HOME'
const printer = `#include <cstddef>
#include <cstdio>
#define VALUE(name) printf("%s = %lld\\n", #name, static_cast<long long>(name))
#define SIZE(type) printf("sizeof %s = %zu\\n", #type, sizeof(type))
#define OFFSET(type, member) printf("offset %s.%s = %zu\\n", #type, #member, offsetof(type, member))
int main() {
`

/** Returns questions about a library's headers: sizes of types, offsets of members and values of names. */
function questionsOf(library: string): string[] {
  const headers = [`${library}.h`, `${library}.gen.h`]
  const text = headers.map((header) => readFileSync(join(nativeFolder, 'include', 'shoal', header), 'utf8')).join('\n')
  // Some structs are inside a union in NVIDIA's header.
  const found = [...text.matchAll(/^struct (?!CUstreamMemOp)(\w+) \{\n(.*?)^\};/gms)]
  const structs = new Map(found.map(([, name = '', body = '']) => [name, body]))
  const membersOf = (struct: string): string[] =>
    [...(structs.get(struct) ?? '').matchAll(/^ {2}\w.*?(\w+)(?:\[.*\])?;$/gm)].flatMap(([, member = '']) => [
      member,
      ...membersOf(`${struct}_${member}`).map((inner) => `${member}.${inner}`),
    ])
  const types = [...text.matchAll(/^(?:enum (\w+) :.*|typedef [^(\n]* \*?(\w+);)$/gm)].map(
    ([, one, other]) => one ?? other,
  )
  const names = [...text.matchAll(/^(?: {2}(\w+) = -?\d+,|#define (\w+) \(-?\w+\))$/gm)]
  return [
    ...[...structs.keys(), ...types].map((type) => `SIZE(${type});`),
    ...[...structs.keys()].flatMap((struct) => membersOf(struct).map((member) => `OFFSET(${struct}, ${member});`)),
    ...names.map(([, enumerator, macro]) => `VALUE(${enumerator ?? macro});`),
  ]
}

/** Returns the output of a program that includes some headers. */
function factsOf(name: string, headers: string, questions: readonly string[], options: readonly string[]) {
  const source = join(buildFolder, `${name}.cc`)
  mkdirSync(buildFolder, { recursive: true })
  writeFileSync(source, `${headers}\n${printer}${questions.join('\n')}\n}\n`)
  return readFacts(execFileSync(compile(source, name, ['-w', ...options]), { encoding: 'utf8' }))
}

test.for([
  { library: 'cuda', folder: cuda, headers: ['cuda.h'], least: 1200 },
  { library: 'nccl', folder: nccl, headers: ['nccl.h', 'nccl_device.h'], least: 190 },
  { library: 'nvshmem', folder: nvshmem, headers: ['nvshmem_host.h'], least: 75 },
])(
  "layouts and values of $library equal those of NVIDIA's headers",
  ({ library, folder, headers, least }, { skip }) => {
    if (cuda === undefined) return skip(noToolkit)
    if (folder === undefined) return skip(`no ${headers[0]} on this machine`)
    const includes = headers.map((header) => `#include <${header}>`).join('\n')
    const folders = ['-I', folder, '-I', cuda]
    const preprocessed = execFileSync('g++', ['-E', '-dD', '-x', 'c++', ...folders, '-'], {
      input: includes,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    })
    const words = new Set(preprocessed.match(/\w+/g))
    // Headers of another version lack some names.
    const questions = questionsOf(library).filter((one) =>
      one.match(/\w+/g)?.every((word, at) => at === 0 || words.has(word)),
    )
    const own = factsOf(`abi-own-${library}`, `#include "shoal/${library}.h"`, questions, [])
    const reference = factsOf(`abi-reference-${library}`, includes, questions, folders)
    expect(reference.size).toBeGreaterThan(least)
    for (const [name, value] of reference) expect(`${name} = ${own.get(name)}`).toBe(`${name} = ${value}`)
  },
)

test("entry points and their versions equal those of NVIDIA's headers", ({ skip }) => {
  if (cuda === undefined) return skip(noToolkit)
  const folder = cuda
  const headers = ['cudaTypedefs.h', 'cudaProfilerTypedefs.h']
  const types = headers.map((header) => readFileSync(join(folder, header), 'utf8')).join('\n')
  const known = new Set(
    [...types.matchAll(/\bPFN_(cu\w+?)_v(\d+)(_pt[ds][sz])?\)/g)].map(([, ...parts]) => parts.join(' ')),
  )
  const source = readFileSync(join(nativeFolder, 'cuda', 'entryPoints.gen.h'), 'utf8')
  const table = [...source.matchAll(/SHOAL_(ONE|TWO)\("(\w+)", (\d+), \w+(?:, (\d+), \w+?(_pt[ds][sz]))?\)/g)]
  expect(table.length).toBeGreaterThan(150)
  for (const [, , name, version, ownVersion, suffix] of table) {
    expect(known).toContain(`${name} ${version} `)
    if (suffix) expect(known).toContain(`${name} ${ownVersion} ${suffix}`)
  }
})
