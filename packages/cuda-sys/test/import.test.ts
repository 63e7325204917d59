import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { moduleRunner } from '../../ffi/test/support/stub.js'

const runModule = moduleRunner(new URL('../', import.meta.url))

const entries = ['@shoal/cuda-sys', '@shoal/cuda-sys/driver', '@shoal/cuda-sys/runtime']

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

test.each(entries)('importing %s takes at most 30 ms on top of the FFI', (entry) => {
  // The fastest of several processes counts: the others only tell how busy the machine is.
  let fastest = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 12 && fastest > 30; attempt++) {
    const [time] = runModule(
      `await import('@shoal/ffi'); await import('@shoal/ffi/calls')
       const start = performance.now()
       await import('${entry}')
       console.log(performance.now() - start)`,
    )
    fastest = Math.min(fastest, Number(time))
  }
  expect(fastest).toBeLessThanOrEqual(30)
})

test('package.json names no dependency beside the house', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    dependencies: object
  }
  expect(Object.keys(manifest.dependencies).sort()).toEqual(['@shoal/ffi', '@shoal/types'])
})
