import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] ??= 'sim'
const root = fileURLToPath(new URL('../../..', import.meta.url))
const packages = ['types', 'ffi', 'driver', 'runtime', 'nccl', 'nvshmem', 'nvrtc', 'nvjitlink', 'launch']

/** Returns all classes that the entries of a package export, by name. */
async function classesOf(name: string): Promise<Map<string, { readonly prototype: object }>> {
  const { exports } = JSON.parse(readFileSync(`${root}packages/${name}/package.json`, 'utf8')) as { exports: object }
  // Entries for other packages also export classes that programs never get.
  const entries = Object.entries(exports as { readonly [entry: string]: { readonly default: string } }).filter(
    ([entry]) => !/json$|internal$|calls$|basics$|shared$/.test(entry),
  )
  const found = new Map<string, { readonly prototype: object }>()
  for (const [, target] of entries) {
    const module = await import(`${root}packages/${name}/${target.default}`)
    for (const [key, value] of Object.entries(module)) {
      if (typeof value === 'function' && /^class\b/.test(String(value))) found.set(key, value as never)
    }
  }
  return found
}

test.each(packages)('each class of %s prints one line in JSON.stringify and console.log', async (name) => {
  const classes = await classesOf(name)
  expect(classes.size).toBeGreaterThan(0)
  const without = [...classes].filter(([, { prototype }]) => !('toJSON' in prototype) && !(prototype instanceof Error))
  expect(without.map(([key]) => key)).toEqual([])
})
