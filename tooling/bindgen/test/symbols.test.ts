import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LibrarySpecFile } from '../src/spec/types.js'
import { libraryNames, readExported, readSpec, root } from './environment.js'

// The exports of the real libraries. README.md describes the origin of each list.
function manifest(file: string): Set<string> {
  const text = readFileSync(join(root, `tooling/bindgen/abi/${file}.symbols.txt`), 'utf8')
  return new Set(text.split('\n').filter((line) => line !== ''))
}

describe.each(libraryNames)('bound symbols of %s', (name) => {
  const spec = readSpec(name)
  const symbols = readExported(name)

  test('are exported by the real library, or have a reason', () => {
    const bound = spec.functions
      .filter(({ platform, reason }) => platform !== 'win32' && reason === undefined)
      .filter(({ since }) => since <= spec.exports.version)
      .flatMap((entry) => [entry.symbol, ...(entry.perThreadSymbol ? [entry.perThreadSymbol] : [])])
    expect(bound.length).toBeGreaterThanOrEqual({ nvrtc: 24, nvjitlink: 16, cublasLt: 49 }[name as string] ?? 51)
    expect(bound.filter((symbol) => !symbols.has(symbol))).toEqual([])
  })

  test('include every per-thread variant of the library', () => {
    const missing = spec.functions.filter(
      ({ symbol, perThreadSymbol }) =>
        perThreadSymbol === undefined && (symbols.has(`${symbol}_ptds`) || symbols.has(`${symbol}_ptsz`)),
    )
    expect(missing.map((entry) => entry.symbol)).toEqual([])
  })
})

const cuda = [
  [
    2000, 2010, 2020, 2030, 3000, 3010, 3020, 4000, 4010, 4020, 5000, 5050, 6000, 6050, 7000, 7050, 8000, 9000, 9010,
    9020,
  ],
  [10000, 10010, 10020, 11000, 11010, 11020, 11030, 11040, 11050, 11060, 11070, 11080],
  [12000, 12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000, 13010, 13020, 13030, 13040],
].flat()
// In the libraries' numbering. NCCL and NVSHMEM omit versions that the specs do not name.
const releases: Readonly<Record<string, readonly number[]>> = {
  driver: cuda,
  runtime: cuda,
  nvrtc: cuda,
  nvjitlink: cuda,
  nvml: cuda,
  nccl: [
    [2000, 2212, 2304, 2402, 2703, 21104, 21304, 21403, 21701, 21801, 21903, 22203, 22304, 22403, 22501, 22703],
    [22803, 22807, 22809, 22902, 22907, 23003, 23005, 23007],
  ].flat(),
  cublas: [120000, 120400, 120500, 120900, 130100],
  cublasLt: [120000, 130000],
  nvshmem: [21100, 30006, 30205, 30309, 30405],
}

test.each(libraryNames)('%s: every version in the spec is an existing release', (name) => {
  const all = [...JSON.stringify(readSpec(name)).matchAll(/"since":(\d+)/g)].map(([, since]) => Number(since))
  expect(all.length).toBeGreaterThan(10)
  expect([...new Set(all)].filter((since) => releases[name]?.includes(since) !== true)).toEqual([])
})

test('NCCL functions up to 2.28 are in 2.28.9, and later functions are not', () => {
  const older = manifest('libnccl-2.28.9')
  const wrong = readSpec('nccl').functions.filter(({ name, since }) => older.has(name) !== since <= 22809)
  expect(wrong.map(({ name, since }) => `${name} since ${since}`)).toEqual([])
})

test.each([
  ['libnccl-2.22.3', 32],
  ['libnccl-2.28.9', 53],
  ['libnccl-2.29.7', 69],
  ['libnccl-2.30.7', 83],
])('every exported function of %s is bound', (file, count) => {
  const bound = new Set(readSpec('nccl').functions.map(({ symbol }) => symbol))
  const symbols = manifest(file)
  expect(symbols.size).toBe(count)
  expect([...symbols].filter((symbol) => !bound.has(symbol))).toEqual([])
})

test('every NCCL function, declared or not, is in a manifest', () => {
  const symbols = readExported('nccl')
  const { functions, exports } = readSpec('nccl')
  const missing = (names: readonly { symbol: string }[]) => names.filter(({ symbol }) => !symbols.has(symbol))
  expect(missing(functions.filter(({ since }) => since <= exports.version))).toEqual([])
  expect(missing([{ symbol: 'ncclTeamInnerFactor' }])).toHaveLength(1)
})

/** Symbols of a library that are neither bound nor explained. */
function unexplained(spec: LibrarySpecFile, symbols: Iterable<string>): string[] {
  const known = new Set([
    ...spec.functions.flatMap(({ symbol, perThreadSymbol }) => [symbol, perThreadSymbol ?? symbol]),
    ...(spec.unbound ?? []).filter(({ reason }) => reason.length > 10).map(({ symbol }) => symbol),
  ])
  return [...symbols].filter((symbol) => !known.has(symbol))
}

describe.each(['driver', 'runtime', 'nvrtc', 'nvjitlink', 'nvml'] as const)('exported symbols of %s', (name) => {
  const spec = readSpec(name)
  const symbols = readExported(name)
  const hasGates = name === 'driver' || name === 'runtime'

  test('are bound, or excluded in the spec with a reason', () => {
    expect(unexplained(spec, symbols)).toEqual([])
  })

  test('lack functions marked as missing or as of another platform', () => {
    const gated = spec.functions.filter(({ platform, reason }) => platform === 'win32' || reason !== undefined)
    // The other libraries have the same functions on all platforms.
    expect(gated.length > 0).toBe(hasGates)
    expect(gated.filter(({ symbol }) => symbols.has(symbol)).map((entry) => entry.symbol)).toEqual([])
  })

  test('are compared so that missing and stale reasons are detected', () => {
    const bound = spec.functions.filter(
      ({ name: exported }) => !/^(cu(da)?MemcpyPeer|nvrtcGetPTX|nvJitLinkComplete|nvmlDeviceGetName)$/.test(exported),
    )
    const without = { ...spec, functions: bound, unbound: (spec.unbound ?? []).map((row) => ({ ...row, reason: '' })) }
    const expected = (spec.unbound ?? []).filter(({ exported }) => exported).map(({ symbol }) => symbol)
    const peer = {
      driver: ['cuMemcpyPeer', 'cuMemcpyPeer_ptds'],
      runtime: ['cudaMemcpyPeer'],
      nvrtc: ['nvrtcGetPTX'],
      nvjitlink: ['nvJitLinkComplete'],
      nvml: ['nvmlDeviceGetName'],
    }[name]
    expect(unexplained(without, symbols).sort()).toEqual([...expected, ...peer].sort())
    for (const { symbol, exported } of spec.unbound ?? []) expect(symbols.has(symbol), symbol).toBe(exported)
  })
})

test('driver versions increase with the ABI revision', () => {
  for (const { name, since, versions, symbol } of readSpec('driver').functions) {
    expect(versions, name).toContain(since)
    const revision = /_v(\d)$/.exec(symbol)?.[1]
    if (revision !== undefined) expect(versions.indexOf(since), name).toBe(Number(revision) - 1)
  }
})
