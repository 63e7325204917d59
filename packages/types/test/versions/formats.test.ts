import {
  CudaVersion,
  formatCudaVersion,
  formatNcclVersion,
  formatNvshmemVersion,
  NcclVersion,
  NvshmemVersion,
} from '@shoal/types'
import { expect, test } from 'vitest'

type Parts = readonly number[]
const kinds: readonly [string, (value: number) => string, (value: number) => unknown, (...parts: Parts) => number][] = [
  ['CUDA', formatCudaVersion, CudaVersion.from, (major = 0, minor = 0) => major * 1000 + minor * 10],
  [
    'NVSHMEM',
    formatNvshmemVersion,
    NvshmemVersion.from,
    (major = 0, minor = 0, patch = 0) => major * 10_000 + minor * 100 + patch,
  ],
  [
    'NCCL',
    formatNcclVersion,
    NcclVersion.from,
    (major = 0, minor = 0, patch = 0) => major * (major < 3 && minor < 9 ? 1000 : 10_000) + minor * 100 + patch,
  ],
]

test.each(kinds)('every version of %s is formatted as by its class', (name, format, from, number) => {
  for (let major = 1; major < 20; major += 1) {
    // Up to 2.8 NCCL's minor version had one digit, and there was no 1.9.
    for (let minor = 0; minor < (name === 'NCCL' && major === 1 ? 9 : 100); minor += 1) {
      for (const patch of name === 'CUDA' ? [[]] : [[0], [1], [42], [99]]) {
        const parts = [major, minor, ...patch]
        const value = number(...parts)
        expect([format(value), String(from(value))]).toEqual([parts.join('.'), parts.join('.')])
      }
    }
  }
})

test('version number 0 is formatted too', () => {
  expect(formatCudaVersion(0)).toBe('0.0')
  expect(formatNcclVersion(0)).toBe('0.0.0')
  expect(formatNvshmemVersion(0)).toBe('0.0.0')
})

test.each(kinds)('the text of %s is defined for C ints only', (name, format) => {
  const api = `format${name === 'CUDA' ? 'Cuda' : name === 'NCCL' ? 'Nccl' : 'Nvshmem'}Version`
  expect(format(2 ** 31 - 1)).toMatch(/^\d+\.\d+/)
  for (const wrong of [-1, 2 ** 31]) {
    expect(() => format(wrong)).toThrow(RangeError)
    expect(() => format(wrong)).toThrow(`${api}: value must be an integer from 0`)
  }
  for (const wrong of [1.5, Number.NaN, '12080', 12080n, undefined, null])
    expect(() => format(wrong as never)).toThrow(TypeError)
})
