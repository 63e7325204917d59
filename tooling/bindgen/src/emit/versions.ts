import type { LibrarySpecFile } from '../spec/types.js'

/** A version for people: 12080 is 12.8, 23007 is 2.30.7, 30405 is 3.4.5. */
export function versionText(library: LibrarySpecFile['library'], version: number): string {
  if (library === 'nvshmem') {
    return `NVSHMEM ${Math.floor(version / 10000)}.${Math.floor((version % 10000) / 100)}.${version % 100}`
  }
  if (library !== 'nccl') {
    const product = { driver: 'CUDA', runtime: 'CUDA', nvrtc: 'NVRTC', nvjitlink: 'nvJitLink' }[library]
    return `${product} ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`
  }
  const base = version >= 10000 ? 10000 : 1000
  return `NCCL ${Math.floor(version / base)}.${Math.floor((version % base) / 100)}.${version % 100}`
}

/** The oldest version that was looked at: functions dated to it may be older. */
const oldest: Partial<Record<LibrarySpecFile['library'], number>> = { runtime: 3020, nvshmem: 30006 }

/** Like {@link versionText}, with "or before" where older versions were not looked at. */
export function sinceText(library: LibrarySpecFile['library'], version: number): string {
  return `${versionText(library, version)}${version === oldest[library] ? ' or before' : ''}`
}
