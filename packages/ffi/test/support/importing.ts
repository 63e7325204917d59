import { expect } from 'vitest'
import { moduleRunner } from './stub.js'

/** 30 ms on a machine on which NVSHMEM's raw package, with 1,500 functions, takes 18 ms. */
const most = 3

/**
 * Imports `entry` like a package in `packageFolder`. Checks that no library is loaded or searched, and that the import,
 * without the FFI, takes at most three times as long as reading 430 KB of declarations. Other work on the machine slows
 * caches, so the fastest of several processes counts.
 */
export function expectLightImport(packageFolder: URL, entry: string): void {
  const run = moduleRunner(packageFolder)
  let fastest = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 12 && fastest > most; attempt += 1) {
    const [touches, times] = run(
      `import { readFileSync } from 'node:fs'
       import { definedLibraries } from '@shoal/ffi'
       import { processorTime, readingTime } from '${new URL('readingTime.mjs', import.meta.url)}'
       await import('@shoal/ffi/calls')
       const time = await processorTime(() => import('${entry}'))
       const maps = process.platform === 'linux' ? readFileSync('/proc/self/maps', 'utf8') : ''
       const isMapped = /libcuda|libcudart|libnccl|libnvshmem|koffi/.test(maps)
       const isAsked = definedLibraries().some((each) => each.isLoaded || each.trace.length > 0)
       console.log(isMapped, isAsked)
       console.log(time / (await readingTime()))`,
    )
    expect(touches).toBe('false false')
    fastest = Math.min(fastest, Number(times))
  }
  expect(fastest).toBeLessThanOrEqual(most)
}
