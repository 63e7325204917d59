import { CudaVersion } from '@shoal/types'
import { describe, expect, it } from 'vitest'

describe('CudaVersion', () => {
  it.each([
    [12080, '12.8', 12, 8],
    [13000, '13.0', 13, 0],
    [11040, '11.4', 11, 4],
    [10020, '10.2', 10, 2],
    [9020, '9.2', 9, 2],
    [12100, '12.10', 12, 10],
  ])('%d is %s', (value, text, major, minor) => {
    const version = CudaVersion.from(value)
    expect([String(version), version.major, version.minor, version.value]).toEqual([text, major, minor, value])
    expect(CudaVersion.of(major, minor)).toEqual(version)
    expect(CudaVersion.parse(text)).toEqual(version)
  })

  it('compares by number, not by text', () => {
    const versions = [9020, 13000, 12080, 12100, 10020].map(CudaVersion.from)
    expect(versions.sort((a, b) => a.compare(b)).map(String)).toEqual(['9.2', '10.2', '12.8', '12.10', '13.0'])
    const version = CudaVersion.of(12, 4)
    expect([version.atLeast(12, 4), version.atLeast(12), version.atLeast(12, 5), version.atLeast(13)]).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect(version.atLeast(CudaVersion.of(12, 4))).toBe(true)
    expect(version.atLeast(CudaVersion.of(12, 5))).toBe(false)
  })

  it('prints as text in JSON', () => {
    expect(JSON.stringify({ version: CudaVersion.from(12080) })).toBe('{"version":"12.8"}')
    expect(`${CudaVersion.parse(' v12.8.61 ')}`).toBe('12.8')
  })

  it('refuses other numbers and texts', () => {
    for (const value of [0, -1, 999, 2 ** 31]) expect(() => CudaVersion.from(value)).toThrow(RangeError)
    for (const value of ['12080', 12.8, Number.NaN, undefined, 12080n]) {
      expect(() => CudaVersion.from(value as number)).toThrow(TypeError)
    }
    for (const text of ['', '12', 'twelve', '12.', '.8', '12.99999']) {
      expect(() => CudaVersion.parse(text), text).toThrow(RangeError)
    }
    expect(() => CudaVersion.of(12, 100)).toThrow('CudaVersion.of: minor must be an integer from 0 to 99, not 100')
    expect(() => CudaVersion.of(12, -1)).toThrow(RangeError)
    expect(() => CudaVersion.of(12, 0.5)).toThrow(TypeError)
    expect(() => CudaVersion.of(12, 1).atLeast(Number.NaN)).toThrow(TypeError)
  })
})
