import { NvshmemVersion } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { hasFault } from '../src/workarounds/faults.js'

describe('a bug of NVSHMEM', () => {
  test('has its workaround exactly in the affected versions', () => {
    const versions = ['3.0.6', '3.4.5', '3.4.99', '3.5.0', '3.8.1'].map((text) => NvshmemVersion.parse(text))
    expect(versions.map((version) => hasFault('heapGrowth', version))).toEqual([true, true, true, false, false])
    expect(versions.map((version) => hasFault('reduceScratch', version))).toEqual([true, true, true, true, true])
  })
})
