import { NvshmemVersion } from '@shoal/types'
import { describe, expect, it } from 'vitest'

describe('NvshmemVersion', () => {
  it('reads number, parts and text', () => {
    const version = NvshmemVersion.from(30405)
    expect(String(version)).toBe('3.4.5')
    expect(NvshmemVersion.of(3, 4, 5)).toEqual(version)
    expect(NvshmemVersion.parse('3.4.5')).toEqual(version)
    expect(() => NvshmemVersion.from(9)).toThrow(RangeError)
  })
})
