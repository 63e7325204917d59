import { CudaVersion, NcclVersion, NvshmemVersion } from '@shoal/types'
import { expect, test } from 'vitest'

test.each([
  ['CudaVersion', CudaVersion, 1000],
  ['NcclVersion', NcclVersion, 1000],
  ['NvshmemVersion', NvshmemVersion, 10_000],
] as const)('%s accepts numbers from its minimum to the maximum of a C int', (name, version, least) => {
  expect(version.from(least).major).toBe(1)
  expect(version.from(0x7fff_ffff).major).toBeGreaterThan(1)
  for (const wrong of [least - 1, 0x7fff_ffff + 1, least + 0.5])
    expect(() => version.from(wrong)).toThrow(`${name}.from: value`)
})
