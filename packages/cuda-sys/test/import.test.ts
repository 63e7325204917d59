import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { moduleRunner } from '../../ffi/test/support/stub.js'

const runModule = moduleRunner(new URL('../', import.meta.url))

const entries = ['@shoal/cuda-sys', '@shoal/cuda-sys/driver', '@shoal/cuda-sys/runtime']

// How long it takes is a figure of the benchmark.
test.each(entries)('importing %s loads no CUDA library and looks for none', (entry) => {
  const lines = runModule(
    `import { readFileSync } from 'node:fs'
     import { definedLibraries } from '@shoal/ffi'
     await import('${entry}')
     const maps = process.platform === 'linux' ? readFileSync('/proc/self/maps', 'utf8') : ''
     console.log(/libcuda|libcudart|libnccl|koffi/.test(maps), definedLibraries().every((each) => !each.isLoaded && each.trace.length === 0))`,
  )
  expect(lines).toEqual(['false true'])
})

test('package.json names no dependency beside the house', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    dependencies: object
  }
  expect(Object.keys(manifest.dependencies).sort()).toEqual(['@shoal/ffi', '@shoal/types'])
})
