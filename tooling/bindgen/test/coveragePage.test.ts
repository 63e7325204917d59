import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { count } from '../src/coverage/count.js'
import { coveragePage } from '../src/coverage/page.js'
import type { LibrarySpecFile } from '../src/spec/types.js'
import { libraryNames, readExported, readSpec, root, workspace } from './environment.js'

function coverageOf(spec: LibrarySpecFile, without = '') {
  const symbols = readExported(spec.library)
  symbols.delete(without)
  return count(spec, symbols)
}

test('docs/coverage.md equals the output of the committed specs', () => {
  const page = coveragePage(libraryNames.map((name) => coverageOf(readSpec(name))))
  expect(readFileSync(join(root, 'docs/coverage.md'), 'utf8')).toBe(page)
  expect(join(workspace.coverageFile)).toBe(join(root, 'docs/coverage.md'))
})

test.each(libraryNames)('%s: every exported symbol is bound or listed exactly once', (name) => {
  const coverage = coverageOf(readSpec(name))
  const symbols = readExported(name)
  // NCCL's list omits the names for profilers, which the spec counts.
  const listed = name === 'nccl' ? symbols.size + coverage.unboundSymbols : symbols.size
  expect(coverage.exportedSymbols).toBe(listed)
  expect(coverage.boundSymbols + coverage.unboundSymbols).toBe(coverage.exportedSymbols)
})

type Row = (spec: LibrarySpecFile, exported: ReadonlySet<string>) => number

const rows: readonly [title: string, row: Row][] = [
  ['**functions bound**', ({ functions }) => functions.length],
  ['of them declared in the headers', ({ functions }) => functions.filter(({ undeclared }) => !undeclared).length],
  ['of them earlier ABIs', ({ functions }) => functions.filter(({ supersededBy }) => supersededBy).length],
  ['on Windows alone', ({ functions }) => functions.filter(({ platform }) => platform === 'win32').length],
  ['with another signature in another major', ({ functions }) => functions.filter((each) => each.otherMajors).length],
  ['of them bound, per-thread variants included', (spec, exported) => boundSymbols(spec, exported).length],
  [
    'bound, and not among them',
    ({ functions }, exported) => functions.filter((each) => !exported.has(each.symbol)).length,
  ],
  ['enumerations', ({ enums }) => enums.length],
  ['structs and unions', ({ structs }) => structs.length],
]

function boundSymbols({ functions }: LibrarySpecFile, exported: ReadonlySet<string>): string[] {
  const bound = new Set(functions.flatMap(({ symbol, perThreadSymbol }) => [symbol, perThreadSymbol ?? symbol]))
  return [...bound].filter((symbol) => exported.has(symbol))
}

test.each(rows)('the coverage page has the numbers of the specs: %s', (title, row) => {
  const page = readFileSync(join(root, 'docs/coverage.md'), 'utf8')
  const line = page.split('\n').find((each) => each.startsWith(`| ${title}`)) as string
  const numbers = line.split('|').slice(2, -1).map(Number)
  expect(numbers).toEqual(libraryNames.map((name) => row(readSpec(name), readExported(name))))
})

test('every function is on the coverage page once, under its required version', () => {
  const spec = readSpec('driver')
  const page = coveragePage([coverageOf(spec)])
  const versions = page.slice(page.indexOf('### Since when'))
  for (const { name } of spec.functions) expect(versions.split(`\`${name}\``), name).toHaveLength(2)
  expect(versions).toMatch(/\| CUDA 12\.1 \| 11 \|.*`cuMulticastCreate`/)
})

test('functions of a family are grouped on the coverage page, and all are counted', () => {
  const page = coveragePage([coverageOf(readSpec('nvshmem'))])
  const puts = [...page.matchAll(/`nvshmem_\{type\}_put` × (\d+)/g)].map((match) => Number(match[1]))
  expect(puts.reduce((total, number) => total + number)).toBe(25)
})

test('a bound function missing in the library without a known reason stops the generator', () => {
  const coverage = coverageOf(readSpec('driver'), 'cuInit')
  expect(() => coveragePage([coverage])).toThrow('libcuda of driver 580.159 lacks cuInit, and no reason is told')
})
