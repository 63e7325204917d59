import { LibraryVersion, parseParts, requireParts, requireVersionNumber } from './libraryVersion.js'

const partsOf = (value: number) =>
  [Math.trunc(value / 10_000), Math.trunc((value % 10_000) / 100), value % 100] as const

/**
 * Formats an NVSHMEM version number: 30405 becomes `3.4.5`.
 *
 * Accepts any `int` from 0, also numbers that {@link NvshmemVersion} refuses. @throws TypeError, RangeError
 */
export function formatNvshmemVersion(value: number): string {
  return partsOf(requireVersionNumber(value, 'formatNvshmemVersion', 0)).join('.')
}

/**
 * A version of NVIDIA's NVSHMEM, as `nvshmemx_vendor_get_version_info` reports it.
 *
 * This is not the OpenSHMEM version that `nvshmem_info_get_version` returns.
 *
 * @example
 * NvshmemVersion.parse('3.4.5').value // 30405
 */
export class NvshmemVersion extends LibraryVersion {
  readonly library = 'nvshmem'

  /**
   * Returns the version of `NVSHMEM_VENDOR_VERSION`: 30405 is 3.4.5.
   *
   * @throws RangeError when it is not a version
   */
  static from(value: number): NvshmemVersion {
    requireVersionNumber(value, 'NvshmemVersion.from', 10_000)
    return new NvshmemVersion(value, ...partsOf(value))
  }

  /** Returns the version of major, minor and patch: `of(3, 4, 5)`. */
  static of(major: number, minor = 0, patch = 0): NvshmemVersion {
    requireParts('NvshmemVersion.of', major, minor, patch)
    return NvshmemVersion.from(major * 10_000 + minor * 100 + patch)
  }

  /** Parses text such as `'3.4.5'`. */
  static parse(text: string): NvshmemVersion {
    return NvshmemVersion.of(...parseParts(text, 'NvshmemVersion'))
  }
}
