import { expect } from 'vitest'
import { moduleRunner } from './stub.js'

const mostMilliseconds = 30

/**
 * Importing `entry`, as a package in `packageFolder` does: no library is loaded or looked for, and it takes at most 30 ms of
 * the processor on top of the FFI. What else the machine does gets no part of that time, but costs caches, so the fastest of
 * several processes counts.
 */
export function expectLightImport(packageFolder: URL, entry: string): void {
  const run = moduleRunner(packageFolder)
  let fastest = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 12 && fastest > mostMilliseconds; attempt += 1) {
    const [touches, time] = run(
      `import { readFileSync } from 'node:fs'
       import { definedLibraries } from '@shoal/ffi'
       await import('@shoal/ffi/calls')
       const start = process.cpuUsage()
       await import('${entry}')
       const { user, system } = process.cpuUsage(start)
       const maps = process.platform === 'linux' ? readFileSync('/proc/self/maps', 'utf8') : ''
       const isMapped = /libcuda|libcudart|libnccl|libnvshmem|koffi/.test(maps)
       const isAsked = definedLibraries().some((each) => each.isLoaded || each.trace.length > 0)
       console.log(isMapped, isAsked)
       console.log((user + system) / 1000)`,
    )
    expect(touches).toBe('false false')
    fastest = Math.min(fastest, Number(time))
  }
  expect(fastest).toBeLessThanOrEqual(mostMilliseconds)
}
