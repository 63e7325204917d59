import { propertyOf } from '../anyValue.js'
import { outOfRange, requireInteger, wrongType } from '../arguments/scalars.js'
import { inspectKey, inspectLine } from '../inspection.js'

/** Libraries whose versions Shoal compares. The CUDA driver and runtime share one numbering. */
export type VersionedLibrary = 'cuda' | 'nccl' | 'nvshmem'

/** A version of one library. Versions of different libraries cannot be compared. */
export abstract class LibraryVersion {
  /** The library of this version. */
  abstract readonly library: VersionedLibrary
  /** The library's own number, such as 12080 (CUDA 12.8) or 23007 (NCCL 2.30.7). */
  readonly value: number
  /** The first part. */
  readonly major: number
  /** The second part. */
  readonly minor: number
  /** The third part; 0 if the library has none. */
  readonly patch: number

  protected constructor(value: number, major: number, minor: number, patch: number) {
    this.value = value
    this.major = major
    this.minor = minor
    this.patch = patch
  }

  /**
   * Compares two versions: negative if this one is older, positive if newer.
   *
   * @throws TypeError when `other` is not a version of the same library
   */
  compare(other: LibraryVersion): number {
    requireVersion(other, this.library, 'LibraryVersion.compare', 'other')
    return this.major - other.major || this.minor - other.minor || this.patch - other.patch
  }

  /** True if this version equals the other one or is newer. */
  atLeast(other: LibraryVersion): boolean
  atLeast(major: number, minor?: number, patch?: number): boolean
  atLeast(other: LibraryVersion | number, minor = 0, patch = 0): boolean {
    const api = 'LibraryVersion.atLeast'
    if (typeof other === 'object') return this.compare(requireVersion(other, this.library, api, 'major')) >= 0
    requireParts(api, other, minor, patch)
    return (this.major - other || this.minor - minor || this.patch - patch) >= 0
  }

  /** Returns text such as `'2.30.7'`. */
  toString(): string {
    return `${this.major}.${this.minor}.${this.patch}`
  }

  /** The same as {@link toString}. */
  toJSON(): string {
    return this.toString()
  }

  [inspectKey](): string {
    return inspectLine(this.constructor.name, { version: this.toString() })
  }
}

/**
 * Returns a version of a library. @throws TypeError
 *
 * Checks by name, not by class, so that versions of two installed copies of this package can be compared.
 */
export function requireVersion(value: unknown, library: string | undefined, api: string, name: string): LibraryVersion {
  const known = propertyOf(value, 'library')
  if (typeof value === 'object' && known !== undefined && (library ?? known) === known) return value as LibraryVersion
  throw wrongType(api, name, library === undefined ? 'a version of a library' : `a version of ${library}`, value)
}

const partNames = ['major', 'minor', 'patch'] as const
/** Minor and patch have two digits each; a larger part would overflow in the library's number. */
const limits = [999, 99, 99]

/** Requires valid major, minor and patch. @throws TypeError, RangeError */
export function requireParts(api: string, ...parts: readonly unknown[]): void {
  for (const [index, part] of parts.entries()) requireInteger(part, api, partNames[index] as string, 0, limits[index])
}

/** Parses a version such as `'2.30.7'`. Ignores a leading `v` and any text after the numbers. */
export function parseParts(text: string, className: string): readonly [number, number, number] {
  const match = /^\s*v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d])/.exec(typeof text === 'string' ? text : '')
  if (typeof text !== 'string') throw wrongType(`${className}.parse`, 'text', 'a string', text)
  if (match === null) {
    throw outOfRange(`${className}.parse`, 'text', 'a version such as 12.8 or 2.30.7', text)
  }
  return [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)]
}

/** Returns a version number, which is a C `int`. @throws TypeError, RangeError */
export function requireVersionNumber(value: unknown, api: string, least: number): number {
  return requireInteger(value, api, 'value', least, 0x7fff_ffff)
}
