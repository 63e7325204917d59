import { LibraryVersion, parseParts, requireParts, requireVersionNumber } from './libraryVersion.js'

function partsOf(value: number) {
  const unit = value < 10_000 ? 1000 : 10_000
  return [Math.trunc(value / unit), Math.trunc((value % unit) / 100), value % 100] as const
}

/**
 * Formats an NCCL version number: 23007 becomes `2.30.7`.
 *
 * Accepts any `int` from 0, also numbers that {@link NcclVersion} refuses. @throws TypeError, RangeError
 */
export function formatNcclVersion(value: number): string {
  return partsOf(requireVersionNumber(value, 'formatNcclVersion', 0)).join('.')
}

/**
 * A version of NCCL, as `ncclGetVersion` reports it.
 *
 * @example
 * String(NcclVersion.from(23007)) // '2.30.7'
 */
export class NcclVersion extends LibraryVersion {
  readonly library = 'nccl'

  /**
   * Returns the version of NCCL's number: 23007 is 2.30.7.
   *
   * Up to 2.8 the minor version has one digit less: 2708 is 2.7.8.
   *
   * @throws RangeError when it is not a version
   */
  static from(value: number): NcclVersion {
    requireVersionNumber(value, 'NcclVersion.from', 1000)
    return new NcclVersion(value, ...partsOf(value))
  }

  /** Returns the version of major, minor and patch: `of(2, 30, 7)`. */
  static of(major: number, minor = 0, patch = 0): NcclVersion {
    requireParts('NcclVersion.of', major, minor, patch)
    const unit = major <= 2 && minor <= 8 ? 1000 : 10_000
    return NcclVersion.from(major * unit + minor * 100 + patch)
  }

  /** Parses text such as `'2.30.7'` or `'2.30'`. */
  static parse(text: string): NcclVersion {
    return NcclVersion.of(...parseParts(text, 'NcclVersion'))
  }
}
