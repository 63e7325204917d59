import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { libraries, libraryRecord, versionParts } from '../index.mjs'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Files without code. */
const prose = /\.(md|json|txt|yaml|cu|ptx)$/
/** Hand-written code that names a library. Read the record instead of adding a file here. */
const allowed: readonly RegExp[] = [
  /^packages\/cli\/package\.json$/,
  // NVRTC's parser of messages serves the linker too.
  /^packages\/nvrtc\/src\/(basics|log\/diagnostic)\.ts$/,
  /^tooling\/bindgen\/src\/(libraries|facts\/compilerSymbols|parse\/(compilers|direction))\.ts$/,
  /^tooling\/fuzz\/(package\.json|src\/arguments\/(exclusions|subjects\/(compilers|index))\.ts)$/,
  /^tooling\/mutate\/src\/subjects\.ts$/,
  /^tooling\/setup\/packages\.mjs$/,
]

test('library names are hard-coded in few places outside records and packages', () => {
  const { id } = libraryRecord('nvjitlink')
  const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
  const named = files.filter((file) => {
    if (file.startsWith(`packages/${id}`) || file.startsWith('tooling/libraries/')) return false
    if (/(^|\/)(test|generated|spec|abi)\/|\.gen\.ts$/.test(file)) return false
    if (prose.test(file) && !file.endsWith('package.json')) return false
    return readFileSync(join(root, file), 'utf8').toLowerCase().includes(id)
  })
  expect(named.filter((file) => !allowed.some((pattern) => pattern.test(file)))).toEqual([])
})

test('library records have different names, variables and files', () => {
  for (const fact of [
    libraries.map(({ id }) => id),
    libraries.map(({ module }) => module),
    libraries.map(({ places }) => places.environment),
    libraries.map(({ places }) => places.linux[0]),
  ]) {
    expect(new Set(fact).size).toBe(libraries.length)
  }
})

test('the file pattern of a record matches only its file names', () => {
  for (const { file, places } of libraries) {
    expect(places.linux.every((name) => file.test(name))).toBe(true)
    expect(libraries.filter((other) => other.places.linux.some((name) => file.test(name)))).toHaveLength(1)
  }
})

test('version numbers are split into their written parts', () => {
  expect(versionParts('cuda', 12080)).toEqual([12, 8])
  expect(versionParts('nccl', 23007)).toEqual([2, 30, 7])
  expect(versionParts('nccl', 2804)).toEqual([2, 8, 4])
  expect(versionParts('nvshmem', 30405)).toEqual([3, 4, 5])
})

test('libraryRecord() lists the existing libraries in its error', () => {
  expect(() => libraryRecord('cublas2')).toThrow('There is no library cublas2, only driver, runtime')
})
