import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
// Parts that the package does not export. The software device has its own atomics, so each part is tested separately
// here, and the whole on GPUs.
import { fromBits, toBits } from '../src/atomics/bits.js'
import { kernelName, kernelOperations, kernelSource } from '../src/atomics/kernelSource.js'

describe('the kernels for atomics', () => {
  const folder = scratchFolder()

  test('have exactly one name per operation and size', () => {
    const names = kernelOperations.flatMap((operation) => [kernelName(operation, 32), kernelName(operation, 64)])
    expect(names.length).toBe(12)
    const entries = [...kernelSource().matchAll(/\.visible \.entry (\w+)\(/g)].map(([, name]) => name)
    expect(entries.sort()).toEqual(names.sort())
  })

  test.for(['sm_75', 'sm_80', 'sm_90', 'sm_100'])('can be compiled for %s', (architecture, { skip }) => {
    if (spawnSync('ptxas', ['--version']).error !== undefined)
      return skip('no ptxas on this machine: install the CUDA toolkit')
    const source = join(folder, 'atomics.ptx')
    writeFileSync(source, kernelSource())
    const { status, stderr } = spawnSync('ptxas', [`-arch=${architecture}`, source, '-o', join(folder, 'a.cubin')])
    expect({ status, stderr: stderr.toString() }).toEqual({ status: 0, stderr: '' })
  })
})

test.for([
  ['i32', -2, 0xffff_fffen],
  ['u32', 4_000_000_000, 4_000_000_000n],
  ['i64', -2n, 0xffff_ffff_ffff_fffen],
  ['u64', 2n ** 64n - 1n, 2n ** 64n - 1n],
  ['f32', -1.5, 0xbfc0_0000n],
  ['f64', -1.5, 0xbff8_0000_0000_0000n],
] as const)('an element of %s is converted to a word and back', ([dtype, value, bits]) => {
  expect(toBits(dtype, value)).toBe(bits)
  expect(fromBits(dtype, bits)).toBe(value)
})
