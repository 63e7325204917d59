import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { expectLightImport } from '../../ffi/test/support/importing.js'

const entries = ['@shoal/cuda-sys', '@shoal/cuda-sys/driver', '@shoal/cuda-sys/runtime']

test.each(entries)('importing %s loads no library, searches none, and adds little to the FFI', (entry) => {
  expectLightImport(new URL('../', import.meta.url), entry)
})

test('package.json depends only on packages of this repository', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    dependencies: object
  }
  expect(Object.keys(manifest.dependencies).sort()).toEqual(['@shoal/ffi', '@shoal/types'])
})
