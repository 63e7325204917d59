import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { otherMajors } from '../src/facts/runtimeMajors.js'
import { runtimeSince } from '../src/facts/runtimeSince.js'
import type { FunctionSpec } from '../src/spec/types.js'
import { readSpec, root } from './environment.js'

interface Manifest {
  file: string
  version: number
  symbols: Set<string>
}

const folder = join(root, 'tooling/bindgen/abi')

/** What releases of a library export, oldest first; the file's name tells the release. */
function manifests(library: string, number: (parts: readonly number[]) => number): Manifest[] {
  return readdirSync(folder)
    .flatMap((file) => {
      const parts = new RegExp(`^${library}-([\\d.]+)\\.symbols\\.txt$`).exec(file)?.[1]?.split('.').map(Number)
      if (parts === undefined) return []
      const symbols = new Set(readFileSync(join(folder, file), 'utf8').trim().split('\n'))
      return [{ file, version: number(parts), symbols }]
    })
    .sort((a, b) => a.version - b.version)
}

const cudart = manifests('libcudart', ([major = 0, minor = 0]) => major * 1000 + minor * 10)
const libnccl = manifests('libnccl', ([major = 0, minor = 0, patch = 0]) => major * 10000 + minor * 100 + patch)

/** Functions that a release exports before the version the spec names, or lacks although it is as new. */
function contradictions(functions: readonly FunctionSpec[], { version, symbols }: Manifest): string[] {
  return functions.flatMap(({ symbol, perThreadSymbol, versions, platform, reason }) => {
    const first = Math.min(...versions)
    if (platform === 'win32' || reason !== undefined) return []
    return [symbol, ...(perThreadSymbol ? [perThreadSymbol] : [])]
      .filter((name) => symbols.has(name) !== first <= version)
      .map((name) => `${name}: said to have come with ${first}`)
  })
}

describe.each(cudart)('$file', (manifest) => {
  test('has exactly the runtime functions that had come with its version', () => {
    expect(contradictions(readSpec('runtime').functions, manifest)).toEqual([])
  })
})

describe.each(libnccl)('$file', (manifest) => {
  test('has exactly the NCCL functions that had come with its version', () => {
    expect(contradictions(readSpec('nccl').functions, manifest)).toEqual([])
  })
})

test('a version that is wrong in either direction would be noticed', () => {
  expect(cudart.map(({ version }) => version)).toEqual([11020, 11080, 12040, 12050, 13000])
  expect(libnccl.map(({ version }) => version)).toEqual([22203, 22809, 22907, 23007])
  const [oldest] = cudart as [Manifest]
  const functions = readSpec('runtime').functions.filter(({ name }) => /^cuda(Malloc|LaunchKernelExC)$/.test(name))
  expect(contradictions(functions, oldest)).toEqual([])
  const wrong = functions.map((entry) => ({ ...entry, versions: [entry.name === 'cudaMalloc' ? 11030 : 11020] }))
  expect(contradictions(wrong, oldest)).toEqual([
    'cudaLaunchKernelExC: said to have come with 11020',
    'cudaLaunchKernelExC_ptsz: said to have come with 11020',
    'cudaMalloc: said to have come with 11030',
  ])
})

test.each(['runtime', 'nccl', 'nvshmem'] as const)('every function of %s has a first version', (library) => {
  const { functions, headerVersion } = readSpec(library)
  for (const { name, since, versions } of functions) {
    expect(since, name).toBe(Math.max(...versions))
    expect(versions[0], name).toBeGreaterThan(0)
    expect(since, name).toBeLessThanOrEqual(headerVersion)
    // 10.2 is 10020, and not 10200.
    if (library === 'runtime') expect([since % 10, since % 1000 < 100], name).toEqual([0, true])
  }
})

test('the facts of the runtime speak of no other functions', () => {
  const names = new Set(readSpec('runtime').functions.map(({ symbol }) => symbol))
  expect(Object.keys(runtimeSince).filter((name) => !names.has(name))).toEqual([])
  expect(Object.keys(otherMajors).filter((name) => !names.has(name))).toEqual([])
})

test('a changed signature is dated after the majors that have another one', () => {
  for (const { name, since, otherMajors: majors } of readSpec('runtime').functions) {
    if (majors) expect(since, name).toBe((Math.max(...majors) + 1) * 1000)
  }
})

test('no runtime function since CUDA 8.0 is older than the driver function of the same name', () => {
  const driver = new Map<string, number>()
  for (const { lookup, versions } of readSpec('driver').functions) {
    driver.set(lookup, Math.min(...versions, driver.get(lookup) ?? Number.POSITIVE_INFINITY))
  }
  const pairs = Object.entries(runtimeSince).flatMap(([name, since]) => {
    const first = driver.get(name.replace(/^cuda/, 'cu'))
    return first === undefined || since < 8000 ? [] : [{ name, since, first }]
  })
  expect(pairs.length).toBeGreaterThan(100)
  expect(pairs.filter(({ since, first }) => since < first)).toEqual([])
})
