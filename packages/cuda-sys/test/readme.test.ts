import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readSpec } from './spec.js'

const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const [driver, runtime] = [readSpec('driver'), readSpec('runtime')]
const exportsOf = { driver: symbols('libcuda-580.159'), runtime: symbols('libcudart-13.0') }

function symbols(library: string): Set<string> {
  const file = new URL(`../../../tooling/bindgen/abi/${library}.symbols.txt`, import.meta.url)
  return new Set(readFileSync(file, 'utf8').trim().split('\n'))
}

/** The numbers in a line of the README that starts with this text. */
function numbers(start: string): number[] {
  const line = text.split('\n').find((entry) => entry.startsWith(`| ${start}`))
  if (line === undefined) throw new Error(`the README has no line for ${start}`)
  return [...line.slice(start.length + 2).matchAll(/(?<![\w.])\d+(?![\w.])/g)].map(Number)
}

type Row = (spec: typeof driver, exported: Set<string>) => number
const both = (row: Row): number[] => [row(driver, exportsOf.driver), row(runtime, exportsOf.runtime)]

test('the README counts what the spec has', () => {
  const earlier = driver.functions.filter(({ supersededBy }) => supersededBy !== undefined).length
  expect(numbers('`@shoal/cuda-sys/driver`')).toEqual([
    driver.functions.length,
    earlier,
    driver.enums.length,
    driver.structs.length,
  ])
  expect(numbers('`@shoal/cuda-sys/runtime`')).toEqual([
    runtime.functions.length,
    runtime.enums.length,
    runtime.structs.length,
  ])
})

test.each<[string, Row]>([
  ['functions that the headers declare', ({ functions }) => functions.length],
  ['of them bound |', ({ functions }) => functions.length],
  ['for Windows alone', ({ functions }) => functions.filter(({ platform }) => platform === 'win32').length],
  ['for Linux alone', ({ functions }) => functions.filter(({ platform }) => platform === 'linux').length],
  ['absent from drivers', ({ functions }) => functions.filter(({ reason }) => reason !== undefined).length],
  ['refused in another major', ({ functions }) => functions.filter((entry) => entry.otherMajors !== undefined).length],
  ['of them bound, per-thread', ({ functions }, exported) => boundSymbols(functions, exported).length],
  ['not bound', ({ unbound }) => unbound.filter((entry) => entry.exported).length],
])('the table of the README is right: %s', (start, row) => {
  expect(numbers(start)).toEqual(both(row))
})

test('the table of the README is right: exported symbols', () => {
  expect(numbers('symbols that the library exports (driver 580.159, libcudart 13.0)')).toEqual(
    both((_spec, exported) => exported.size),
  )
  for (const [spec, exported] of [
    [driver, exportsOf.driver],
    [runtime, exportsOf.runtime],
  ] as const) {
    const unbound = spec.unbound.filter((entry) => entry.exported).length
    expect(boundSymbols(spec.functions, exported).length + unbound).toBe(exported.size)
  }
})

function boundSymbols(functions: typeof driver.functions, exported: Set<string>): string[] {
  const bound = new Set(functions.flatMap(({ symbol, perThreadSymbol }) => [symbol, perThreadSymbol ?? symbol]))
  return [...bound].filter((symbol) => exported.has(symbol))
}
