import { type LibraryName, libraryRecord, versionParts } from '../../../libraries/index.mjs'

/** A readable version: 12080 is CUDA 12.8, 23007 is NCCL 2.30.7, 30405 is NVSHMEM 3.4.5. */
export function versionText(library: LibraryName, version: number): string {
  const { versionTitle, version: record } = libraryRecord(library)
  return `${versionTitle} ${versionParts(record.format, version).join('.')}`
}

/** Like {@link versionText}, with "or before" for the oldest version that was examined. */
export function sinceText(library: LibraryName, version: number): string {
  return `${versionText(library, version)}${version === libraryRecord(library).version.oldest ? ' or before' : ''}`
}
