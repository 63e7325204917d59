import { NcclVersion } from '@shoal/types'
import { describe, expect, it } from 'vitest'

describe('NcclVersion', () => {
  it.each([
    [23007, '2.30.7'],
    [22809, '2.28.9'],
    [20903, '2.9.3'],
    [21003, '2.10.3'],
    // Before 2.9 the minor version had one digit less.
    [2708, '2.7.8'],
    [2804, '2.8.4'],
    [2304, '2.3.4'],
  ])('%d is %s', (value, text) => {
    const version = NcclVersion.from(value)
    expect(String(version)).toBe(text)
    expect(NcclVersion.parse(text)).toEqual(version)
    expect(NcclVersion.of(version.major, version.minor, version.patch).value).toBe(value)
  })

  it('orders versions across the change of the encoding', () => {
    expect(NcclVersion.from(2804).compare(NcclVersion.from(20903))).toBeLessThan(0)
    expect(NcclVersion.from(23007).atLeast(2, 28, 7)).toBe(true)
    expect(NcclVersion.from(22803).atLeast(2, 28, 7)).toBe(false)
    expect(NcclVersion.from(23007).compare(NcclVersion.of(2, 30, 7))).toBe(0)
  })
})
