import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readSpec } from './spec.js'

process.env['SHOAL_DEVICE'] = 'sim'
const { driver, runtime } = await import('@shoal/cuda-sys')
const { cuInit } = await import('@shoal/cuda-sys/driver')
const { cudaGetLastError } = await import('@shoal/cuda-sys/runtime')
const { bindCall } = await import('@shoal/ffi/calls')

const notSupported = 801
const folders = { driver: 'cuda', runtime: 'cudart' } as const

/** Returns the symbols that the software device exports without an implementation. */
function unsupported(library: keyof typeof folders): string[] {
  const file = new URL(`../../sim/native/${folders[library]}/unsupported.gen.h`, import.meta.url)
  return [...readFileSync(file, 'utf8').matchAll(/^SHOAL_UNSUPPORTED\((\w+)\)$/gm)].map(([, name]) => name as string)
}

test.each([
  ['driver', driver],
  ['runtime', runtime],
] as const)('the software device has every Linux function of the %s spec, under all its names', (name, library) => {
  const { functions } = readSpec(name)
  const ofLinux = functions.filter(({ platform }) => platform !== 'win32')
  expect(ofLinux.length).toBeGreaterThan(300)
  const symbols = ofLinux.flatMap(({ symbol, perThreadSymbol }) => [
    symbol,
    ...(perThreadSymbol ? [perThreadSymbol] : []),
  ])
  expect(symbols.filter((symbol) => library.rawSymbol(symbol) === undefined)).toEqual([])
})

test('cuGetProcAddress of the software device finds each function at its version', () => {
  const ofLinux = readSpec('driver').functions.filter(({ platform }) => platform !== 'win32')
  const missing = ofLinux.filter(({ lookup, since }) => !driver.has(lookup, since))
  expect(missing.map(({ symbol }) => symbol)).toEqual([])
})

test('unsupported functions of the software device return not-supported, or not-initialized before cuInit', () => {
  const call = bindCall(driver.address('cuGraphCreate', 10_000), 2, 'i32', 'cuGraphCreate')
  expect(call()).toBe(3)
  expect(cuInit(0)).toBe(0)
  for (const [name, library] of [
    ['driver', driver],
    ['runtime', runtime],
  ] as const) {
    const names = unsupported(name)
    expect(names.length).toBeGreaterThan(150)
    const answers = names.map((symbol) => [symbol, bindCall(library.rawSymbol(symbol) as bigint, 0, 'i32', symbol)()])
    expect(answers.filter(([, status]) => status !== notSupported)).toEqual([])
  }
  expect(cudaGetLastError()).toBe(notSupported)
  expect(cudaGetLastError()).toBe(0)
})

test('supported functions are not in the list of unsupported functions', () => {
  for (const symbol of ['cuMemAlloc_v2', 'cuLaunchKernel', 'cuModuleLoadData', 'cuStreamQuery_ptsz'])
    expect(unsupported('driver')).not.toContain(symbol)
  for (const symbol of ['cudaMalloc', 'cudaCreateChannelDesc', 'cudaMemcpyAsync_ptsz'])
    expect(unsupported('runtime')).not.toContain(symbol)
})
