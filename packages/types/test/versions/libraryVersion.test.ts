import { inspect } from 'node:util'
import { CudaVersion, LibraryVersion, NcclVersion, NvshmemVersion } from '@shoal/types'
import { describe, expect, it } from 'vitest'

describe('LibraryVersion', () => {
  it('is the base of each version class, and names its library', () => {
    const versions = [CudaVersion.of(13), NcclVersion.of(2, 30), NvshmemVersion.of(3, 4)]
    for (const version of versions) expect(version).toBeInstanceOf(LibraryVersion)
    expect(versions.map(({ library }) => library)).toEqual(['cuda', 'nccl', 'nvshmem'])
  })

  it('is printed in one line', () => {
    expect(inspect(NcclVersion.of(2, 30, 7))).toBe("NcclVersion { version: '2.30.7' }")
  })

  it('refuses to compare versions of different libraries', () => {
    expect(() => CudaVersion.of(12, 8).compare(NcclVersion.of(2, 30))).toThrow(
      'LibraryVersion.compare: other must be a version of cuda, not an object of class NcclVersion',
    )
    expect(() => NcclVersion.of(2, 30).atLeast(CudaVersion.of(12))).toThrow(TypeError)
    expect(() => CudaVersion.of(12).compare(undefined as never)).toThrow(TypeError)
  })
})
