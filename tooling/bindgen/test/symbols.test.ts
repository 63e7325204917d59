import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { libraryNames, readSpec, root } from './environment.js'

// What the real libraries export; see README.md for where each list comes from.
const manifests = { driver: 'libcuda-580.159', runtime: 'libcudart-13.0', nccl: 'libnccl-2.30.7' } as const

function manifest(file: string): Set<string> {
  const text = readFileSync(join(root, `tooling/bindgen/abi/${file}.symbols.txt`), 'utf8')
  return new Set(text.split('\n').filter((line) => line !== ''))
}

describe.each(libraryNames)('%s', (name) => {
  const spec = readSpec(name)
  const symbols = manifest(manifests[name])

  test('every bound symbol is exported by the real library', () => {
    const bound = spec.functions.flatMap((entry) => [
      entry.symbol,
      ...(entry.perThreadSymbol ? [entry.perThreadSymbol] : []),
    ])
    expect(bound.length).toBeGreaterThan(50)
    expect(bound.filter((symbol) => !symbols.has(symbol))).toEqual([])
  })

  test('where the library has a per-thread variant, the spec knows it', () => {
    const missing = spec.functions.filter(
      ({ symbol, perThreadSymbol }) =>
        perThreadSymbol === undefined && (symbols.has(`${symbol}_ptds`) || symbols.has(`${symbol}_ptsz`)),
    )
    expect(missing.map((entry) => entry.symbol)).toEqual([])
  })
})

test('NCCL functions that came with 2.28 or before are in 2.28.9, the others are not', () => {
  const older = manifest('libnccl-2.28.9')
  const wrong = readSpec('nccl').functions.filter(({ name, since }) => older.has(name) !== since <= 22809)
  expect(wrong.map(({ name, since }) => `${name} since ${since}`)).toEqual([])
})

test('driver versions rise with the ABI revision', () => {
  for (const { name, since, versions, symbol } of readSpec('driver').functions) {
    expect(versions, name).toContain(since)
    const revision = /_v(\d)$/.exec(symbol)?.[1]
    if (revision !== undefined) expect(versions.indexOf(since), name).toBe(Number(revision) - 1)
  }
})
