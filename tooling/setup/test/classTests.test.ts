import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Packages with classes. */
const packages = ['types', 'ffi', 'driver', 'runtime', 'nccl', 'nvshmem', 'nvrtc', 'nvjitlink', 'launch'] as const
/** Entries that packages import from each other. */
const ownUse = /^\.\/(?:internal|public|basics|shared|common|calls)$/

/** Returns the built files behind the entries of a package. */
function entriesOf(name: string): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8')) as {
    exports: { readonly [entry: string]: string | { readonly default: string } }
  }
  return Object.entries(exports).flatMap(([entry, target]) =>
    typeof target === 'string' || ownUse.test(entry) ? [] : [join(root, 'packages', name, target.default)],
  )
}

/** The public classes, and the packages that export each one. */
const classes = new Map<unknown, { readonly name: string; readonly offeredBy: Set<string> }>()
for (const offering of packages) {
  for (const file of entriesOf(offering)) {
    for (const [name, value] of Object.entries((await import(file)) as object)) {
      if (typeof value !== 'function' || !Function.prototype.toString.call(value).startsWith('class')) continue
      const known = classes.get(value) ?? { name, offeredBy: new Set() }
      known.offeredBy.add(offering)
      classes.set(value, known)
    }
  }
}
const tests = new Map(
  packages.map((name) => {
    const files = readdirSync(join(root, 'packages', name, 'test'), { recursive: true, encoding: 'utf8' })
    return [name as string, new Set(files.map((file) => basename(file).toLowerCase()))]
  }),
)

describe('every public class has a test file named after it, in a package that exports it', () => {
  it.each(packages)('%s', (offering) => {
    const own = [...classes.values()].filter((known) => known.offeredBy.has(offering))
    const without = own.filter(({ name, offeredBy }) => {
      const file = `${name.toLowerCase()}.test.ts` // file names write acronyms as lower-case words
      return ![...offeredBy].some((each) => tests.get(each)?.has(file))
    })
    expect(without.map(({ name }) => name)).toEqual([])
  })

  it('including classes of all packages and of all their entries', () => {
    expect(new Set([...classes.values()].flatMap(({ offeredBy }) => [...offeredBy])).size).toBe(packages.length)
    expect([...classes.values()].map(({ name }) => name)).toEqual(expect.arrayContaining(['Graph', 'GraphExec']))
  })
})
