import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { runModule } from './stub.js'

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

// Fastest of several processes: the others only tell how busy the machine is.
test.each(entries)('importing %s takes at most 30 ms on top of the FFI', (entry) => {
  const times = Array.from({ length: 5 }, () =>
    Number(
      runModule(
        `await import('@shoal/ffi'); await import('@shoal/ffi/calls')
         const start = performance.now()
         await import('${entry}')
         console.log(performance.now() - start)`,
      )[0],
    ),
  )
  expect(Math.min(...times)).toBeLessThanOrEqual(30)
})

test('package.json names no dependency beside the house', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    dependencies: object
  }
  expect(Object.keys(manifest.dependencies).sort()).toEqual(['@shoal/ffi', '@shoal/types'])
})
