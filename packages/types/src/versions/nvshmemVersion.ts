import { LibraryVersion, parseParts, requireParts, requireVersionNumber } from './libraryVersion.js'

const partsOf = (value: number) =>
  [Math.trunc(value / 10_000), Math.trunc((value % 10_000) / 100), value % 100] as const

/**
 * A version as NVSHMEM counts them, for people: 30405 is `3.4.5`. Takes any `int` from 0, also what
 * {@link NvshmemVersion} refuses. @throws TypeError, RangeError
 */
export function formatNvshmemVersion(value: number): string {
  return partsOf(requireVersionNumber(value, 'formatNvshmemVersion', 0)).join('.')
}

/**
 * A version of NVIDIA's NVSHMEM, as `nvshmemx_vendor_get_version_info` reports it. Not the version of the OpenSHMEM
 * specification that `nvshmem_info_get_version` gives.
 *
 * @example
 * NvshmemVersion.parse('3.4.5').value // 30405
 */
export class NvshmemVersion extends LibraryVersion {
  readonly library = 'nvshmem'

  /**
   * From the number of `NVSHMEM_VENDOR_VERSION`: 30405 is 3.4.5.
   *
   * @throws RangeError when it is no version
   */
  static from(value: number): NvshmemVersion {
    requireVersionNumber(value, 'NvshmemVersion.from', 10_000)
    return new NvshmemVersion(value, ...partsOf(value))
  }

  /** From major, minor and patch: `of(3, 4, 5)`. */
  static of(major: number, minor = 0, patch = 0): NvshmemVersion {
    requireParts('NvshmemVersion.of', major, minor, patch)
    return NvshmemVersion.from(major * 10_000 + minor * 100 + patch)
  }

  /** From text such as `'3.4.5'`. */
  static parse(text: string): NvshmemVersion {
    return NvshmemVersion.of(...parseParts(text, 'NvshmemVersion'))
  }
}
