import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as driver from '@shoal/cuda-sys/driver'
import * as driverCommon from '@shoal/cuda-sys/driver/common'
import * as runtime from '@shoal/cuda-sys/runtime'
import * as runtimeCommon from '@shoal/cuda-sys/runtime/common'
import { describe, expect, test } from 'vitest'

const packages = fileURLToPath(new URL('../../', import.meta.url))

/** Entries of their own, which load the whole. */
const ofItsOwn = /^(?:graph|pitched|managed|green|external|texture|diagnostics|linker)\b|^context.createdContext/

/** Values that sources of safe packages import from an entry. */
function importedFrom(entry: string): string[] {
  const names = new Set<string>()
  for (const safe of ['cuda-base', 'driver', 'runtime', 'nccl', 'nvshmem']) {
    const folder = join(packages, safe, 'src')
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts') || ofItsOwn.test(file)) continue
      const source = readFileSync(join(folder, file), 'utf8')
      for (const [, list = '', from] of source.matchAll(/import \{([^}]*)\} from '([^']*)'/g)) {
        if (from !== entry) continue
        for (const name of list.split(',')) if (!/^\s*(?:type |$)/.test(name)) names.add(name.trim())
      }
    }
  }
  return [...names].sort()
}

describe.each([
  ['driver', driver, driverCommon],
  ['runtime', runtime, runtimeCommon],
] as const)('the common part of the %s', (name, whole, common) => {
  test('has what the safe packages use, and nothing else', () => {
    expect(Object.keys(common).sort()).toEqual(importedFrom(`@shoal/cuda-sys/${name}/common`))
    expect(importedFrom(`@shoal/cuda-sys/${name}`)).toEqual([])
  })

  test('is a part of the whole, with the same library', () => {
    expect(Object.keys(whole)).toEqual(expect.arrayContaining(Object.keys(common)))
    const libraryOf = (entry: object): unknown => (entry as { [name: string]: unknown })[name]
    if (libraryOf(common) !== undefined) expect(libraryOf(common)).toBe(libraryOf(whole))
  })
})
