import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Lower ones first: a class belongs to the first that exports it. Programs do not import `cuda-base`. */
const packages = ['types', 'ffi', 'cuda-base', 'driver', 'runtime', 'nccl', 'nvshmem', 'launch'] as const

const homes = new Map<unknown, { readonly home: string; readonly name: string; isPublic: boolean }>()
for (const home of packages) {
  const entry = (await import(join(root, 'packages', home, 'dist', 'index.js'))) as object
  for (const [name, value] of Object.entries(entry)) {
    if (typeof value !== 'function' || !Function.prototype.toString.call(value).startsWith('class')) continue
    const known = homes.get(value) ?? { home, name, isPublic: false }
    known.isPublic ||= home !== 'cuda-base'
    homes.set(value, known)
  }
}
const classes = [...homes.values()].filter(({ isPublic }) => isPublic)

describe('every public class has a test file named after it, in the package it is of', () => {
  it.each(packages)('%s', (home) => {
    const files = readdirSync(join(root, 'packages', home, 'test'), { recursive: true, encoding: 'utf8' })
    const tested = new Set(files.map((file) => basename(file)))
    const own = classes.filter((known) => known.home === home)
    const without = own.filter(({ name }) => !tested.has(`${name.charAt(0).toLowerCase()}${name.slice(1)}.test.ts`))
    expect(without.map(({ name }) => name)).toEqual([])
  })

  it('looks at classes of most packages', () => {
    expect(new Set(classes.map(({ home }) => home)).size).toBeGreaterThan(5)
  })
})
