import { propertyOf } from '../anyValue.js'
import { outOfRange, requireInteger, wrongType } from '../arguments/scalars.js'
import { inspectKey, inspectLine } from '../inspection.js'

/** Libraries whose versions Shoal compares. The CUDA driver and the CUDA runtime count alike. */
export type VersionedLibrary = 'cuda' | 'nccl' | 'nvshmem'

/** A version of one library. Versions of different libraries do not compare. */
export abstract class LibraryVersion {
  /** Whose version it is. */
  abstract readonly library: VersionedLibrary
  /** The number the library itself uses for it, such as 12080 (CUDA 12.8) or 23007 (NCCL 2.30.7). */
  readonly value: number
  /** The first part. */
  readonly major: number
  /** The second part. */
  readonly minor: number
  /** The third part; 0 where the library has none. */
  readonly patch: number

  protected constructor(value: number, major: number, minor: number, patch: number) {
    this.value = value
    this.major = major
    this.minor = minor
    this.patch = patch
  }

  /**
   * Negative when this version is older than the other, 0 when equal, positive when newer.
   *
   * @throws TypeError when `other` is not a version of the same library
   */
  compare(other: LibraryVersion): number {
    requireVersion(other, this.library, 'LibraryVersion.compare', 'other')
    return this.major - other.major || this.minor - other.minor || this.patch - other.patch
  }

  /** Whether this version is the other one or newer. */
  atLeast(other: LibraryVersion): boolean
  atLeast(major: number, minor?: number, patch?: number): boolean
  atLeast(other: LibraryVersion | number, minor = 0, patch = 0): boolean {
    const api = 'LibraryVersion.atLeast'
    if (typeof other === 'object') return this.compare(requireVersion(other, this.library, api, 'major')) >= 0
    requireParts(api, other, minor, patch)
    return (this.major - other || this.minor - minor || this.patch - patch) >= 0
  }

  /** As people write it, such as `'2.30.7'`. */
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
 * A version of a library: by name and not by class, so that versions of two installed copies of this package compare as
 * well. @throws TypeError
 */
export function requireVersion(value: unknown, library: string | undefined, api: string, name: string): LibraryVersion {
  const known = propertyOf(value, 'library')
  if (typeof value === 'object' && known !== undefined && (library ?? known) === known) return value as LibraryVersion
  throw wrongType(api, name, library === undefined ? 'a version of a library' : `a version of ${library}`, value)
}

const partNames = ['major', 'minor', 'patch'] as const
/** Two digits each for minor and patch: a larger one would run into its neighbour in the library's number. */
const limits = [999, 99, 99]

/** Major, minor and patch as given. @throws TypeError, RangeError */
export function requireParts(api: string, ...parts: readonly unknown[]): void {
  for (const [index, part] of parts.entries()) requireInteger(part, api, partNames[index] as string, 0, limits[index])
}

/**
 * The parts of a version as people write it, such as `'2.30.7'`; a leading `v` and anything after the numbers is
 * ignored.
 */
export function parseParts(text: string, className: string): readonly [number, number, number] {
  const match = /^\s*v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d])/.exec(typeof text === 'string' ? text : '')
  if (typeof text !== 'string') throw wrongType(`${className}.parse`, 'text', 'a string', text)
  if (match === null) {
    throw outOfRange(`${className}.parse`, 'text', 'a version such as 12.8 or 2.30.7', text)
  }
  return [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)]
}

/** A number as a library reports it, a C `int`. @throws TypeError, RangeError */
export function requireVersionNumber(value: unknown, api: string, least: number): number {
  return requireInteger(value, api, 'value', least, 0x7fff_ffff)
}
