import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

interface Cost {
  readonly times: number
  readonly bytes: number
}

/** Returns the minimum time of several runs, because other work can only add time, and the median memory. */
async function cost(specifier: string): Promise<Cost> {
  const runs: Cost[] = []
  for (let run = 0; run < 5; run += 1) {
    // When Node starts its optimizing compiler, megabytes of Node's own code become resident. That is not the package's
    // cost.
    const options = { arguments: [specifier], nodeArguments: ['--no-opt'] }
    const result = await runFixture('importCost.mjs', {}, options)
    expect(result.stderr).toBe('')
    runs.push(JSON.parse(result.stdout) as Cost)
  }
  return {
    times: Math.min(...runs.map((run) => run.times)),
    // On a busy machine, Node alone sometimes uses 2 MB less.
    bytes: median(runs.map((run) => run.bytes)),
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number
}

test('importing the package is fast and takes at most 12 MB', async () => {
  const bare = await cost('./empty.mjs')
  const driver = await cost('@shoal/driver')
  // The import takes 2 to 2.5 times as long as reading 430 KB of declarations.
  expect(driver.times).toBeLessThanOrEqual(5)
  expect((driver.bytes - bare.bytes) / 2 ** 20).toBeLessThanOrEqual(12)
})

test('importing the package loads no native library', async ({ skip }) => {
  skip(process.platform !== 'linux', 'reads /proc/self/maps, which only Linux has')
  const result = await runFixture('importOnly.mjs', {})
  expect(result.stderr).toBe('')
  expect(result.code).toBe(0)
  const files = JSON.parse(result.stdout) as string[]
  expect(files.length).toBeGreaterThan(0)
  expect(files.filter((file) => /cuda|nvidia|nccl|nvshmem|shoal|koffi/i.test(file.split('/').at(-1) ?? ''))).toEqual([])
})

test('importing the package loads no slow module of Node', async () => {
  const result = await runFixture('importParts.mjs', {})
  expect(result.stderr).toBe('')
  const parts = JSON.parse(result.stdout) as string[]
  expect(
    parts.filter((part) => /\b(?:worker|os|module|crypto|net|stream|initialize_import_meta)\b/.test(part)),
  ).toEqual([])
})

test('importing the package loads few packages and files', () => {
  const files = new Map<string, string[]>()
  const packages = new URL('../../', import.meta.url)
  const visit = (file: URL): void => {
    if (files.has(file.href)) return
    const source = readFileSync(file, 'utf8')
    const specifiers = [
      ...new Set(
        [...source.matchAll(/^(?:import|export) .* from ?"((?!node:)[^"]+)";$/gm)].map(([, from = '']) => from),
      ),
    ]
    files.set(file.href, specifiers)
    for (const specifier of specifiers) visit(specifier.startsWith('.') ? new URL(specifier, file) : entry(specifier))
  }
  const entry = (specifier: string): URL => {
    const [, name = '', path = ''] = /^@shoal\/([^/]+)(.*)$/.exec(specifier) ?? []
    const manifest = JSON.parse(readFileSync(new URL(`${name}/package.json`, packages), 'utf8'))
    return new URL(`${name}/${manifest.exports[`.${path}`].default}`, packages)
  }
  visit(entry('@shoal/driver'))
  const resolved = [...files.values()].flat().filter((specifier) => !specifier.startsWith('.'))
  const packagesOf = new Set(resolved.map((specifier) => specifier.split('/').slice(0, 2).join('/')))
  expect([...packagesOf].sort()).toEqual(['@shoal/ffi', '@shoal/types'])
  // Each file costs 0.5 ms.
  expect(files.size).toBeLessThanOrEqual(18)
})
