import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  CudaVersion,
  Feature,
  FeatureNotSupportedError,
  featureInfo,
  NcclVersion,
  NvshmemVersion,
  requireFeature,
  supports,
} from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { cudaInclude } from './toolchain.js'

const features = Object.values(Feature)

describe('the feature table', () => {
  it('lists every feature once', () => {
    expect(new Set(features).size).toBe(features.length)
    for (const feature of features) {
      expect(featureInfo(feature)).toMatchObject({ feature })
      expect(featureInfo(feature).since.library).toBe(featureInfo(feature).library)
    }
  })

  it.each([
    [Feature.virtualMemory, '10.2'],
    [Feature.streamOrderedAllocation, '11.2'],
    [Feature.launchAttributes, '11.6'],
    [Feature.libraryManagement, '12.0'],
    [Feature.tensorMaps, '12.0'],
    [Feature.multicast, '12.1'],
    [Feature.conditionalNodes, '12.3'],
    [Feature.greenContexts, '12.4'],
    [Feature.logs, '12.9'],
  ])('has %s since %s', (feature, since) => {
    expect(String(featureInfo(feature).since)).toBe(since)
  })

  it('agrees with the versions in cudaTypedefs.h', ({ skip }) => {
    const include = cudaInclude()
    if ('reason' in include) return skip(include.reason)
    const file = join(include.folder, 'cudaTypedefs.h')
    if (!existsSync(file)) return skip(`no ${file}`)
    const text = readFileSync(file, 'utf8')
    const checked = features.map(featureInfo).filter((info) => info.library === 'cuda')
    const mismatches = checked.filter(({ api, since }) => !text.includes(`PFN_${api}_v${since.value})`))
    expect(mismatches.map(({ feature, api, since }) => `${feature}: ${api} ${since}`)).toEqual([])
    // A first version: the same function has no older one, unless the feature is a later revision.
    const revisions: readonly string[] = [Feature.symbolStatus, Feature.graphEdgeData]
    const older = checked.filter(({ feature, api, since }) => {
      const versions = [...text.matchAll(new RegExp(`PFN_${api}_v(\\d+)\\)`, 'g'))].map((match) => Number(match[1]))
      return !revisions.includes(feature) && versions.some((version) => version < since.value)
    })
    expect(older.map(({ feature }) => feature)).toEqual([])
  })
})

describe('the feature table against the specs of the libraries', () => {
  interface Spec {
    functions: { lookup: string; versions: number[] }[]
  }
  const libraries = { cuda: 'driver', nccl: 'nccl', nvshmem: 'nvshmem' } as const

  /**
   * Returns the versions of a feature's function in the spec. Each has a new ABI; the first introduced the function.
   */
  function versionsOf(library: keyof typeof libraries, api: string): number[] {
    const file = new URL(`../../../tooling/bindgen/spec/${libraries[library]}.json`, import.meta.url)
    const { functions } = JSON.parse(readFileSync(file, 'utf8')) as Spec
    const versions = functions.filter(({ lookup }) => lookup === api).flatMap((entry) => entry.versions)
    return [...new Set(versions)].sort((a, b) => a - b)
  }

  const symbols = features.map(featureInfo).filter(({ api }) => api !== undefined)
  // For these, the feature is a later form of the function.
  const later: readonly string[] = [Feature.symbolStatus, Feature.graphEdgeData]

  it.each(symbols.map((info) => [info.feature, info] as const))(
    'has %s since the version of its function',
    (_, info) => {
      const versions = versionsOf(info.library, info.api as string)
      expect(versions.length).toBeGreaterThan(0)
      if (info.library === 'cuda') {
        expect(versions).toContain(info.since.value)
        if (!later.includes(info.feature)) expect(info.since.value).toBe(versions[0])
        return
      }
      // A row without a patch covers the whole minor version, whose first release may have a patch above 0.
      const first = (info.library === 'nccl' ? NcclVersion : NvshmemVersion).from(versions[0] as number)
      const { major, minor, patch } = info.since
      expect([major, minor]).toEqual([first.major, first.minor])
      if (patch !== 0) expect(patch).toBe(first.patch)
    },
  )

  it('ties most features to a function', () => {
    expect(symbols.length).toBeGreaterThan(45)
    expect(features.length - symbols.length).toBeLessThan(6)
  })
})

describe('supports', () => {
  it('compares with the first version of the feature', () => {
    expect(supports(CudaVersion.of(12, 1), Feature.multicast)).toBe(true)
    expect(supports(CudaVersion.of(12, 0), Feature.multicast)).toBe(false)
    expect(supports(NcclVersion.from(22803), Feature.ncclRevoke)).toBe(false)
    expect(supports(NcclVersion.from(22809), Feature.ncclRevoke)).toBe(true)
    // If the patch matters, the previous one is too old.
    for (const [feature, major, minor, patch] of [
      [Feature.ncclRevoke, 2, 28, 7],
      [Feature.ncclSuspend, 2, 29, 7],
      [Feature.ncclMemoryStatistics, 2, 29, 7],
    ] as const) {
      expect(supports(NcclVersion.of(major, minor, patch), feature)).toBe(true)
      expect(supports(NcclVersion.of(major, minor, patch - 1), feature)).toBe(false)
      expect(String(featureInfo(feature).since)).toBe(`${major}.${minor}.${patch}`)
    }
    expect(supports(NcclVersion.from(2708), Feature.ncclBfloat16)).toBe(false)
    expect(supports(NvshmemVersion.of(2, 10, 1), Feature.nvshmemUniqueId)).toBe(false)
  })

  it('refuses another library and unknown features', () => {
    expect(() => supports(NcclVersion.from(23007), Feature.multicast)).toThrow(TypeError)
    expect(() => supports(CudaVersion.of(13), 'nothing' as Feature)).toThrow(
      /^supports: feature must be one of virtual-memory, .*, not 'nothing'$/,
    )
  })
})

describe('requireFeature', () => {
  it('passes if the version has the feature', () => {
    expect(requireFeature(CudaVersion.of(13), Feature.logs)).toBeUndefined()
  })

  it('throws an error with the needed and the installed version', () => {
    let thrown: unknown
    try {
      requireFeature(CudaVersion.from(11080), Feature.multicast, 'CUDA driver')
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(FeatureNotSupportedError)
    expect(thrown).toMatchObject({
      code: 'SHOAL_FEATURE_NOT_SUPPORTED',
      library: 'CUDA driver',
      api: 'multicast objects',
      since: '12.1',
      installed: '11.8',
    })
    expect(String(thrown)).toContain('Update CUDA driver')
    expect(() => requireFeature(NcclVersion.from(2708), Feature.ncclSplit)).toThrow('NCCL does not support')
  })
})
