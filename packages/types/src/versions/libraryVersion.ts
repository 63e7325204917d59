import { describeValue } from '../describeValue.js'

/** Libraries whose versions Shoal compares. The CUDA driver and the CUDA runtime count alike. */
export type VersionedLibrary = 'cuda' | 'nccl' | 'nvshmem'

/** A version of one library. Versions of different libraries do not compare. */
export abstract class LibraryVersion {
  abstract readonly library: VersionedLibrary
  /** The number the library itself uses for it, such as 12080 (CUDA 12.8) or 23007 (NCCL 2.30.7). */
  readonly value: number
  readonly major: number
  readonly minor: number
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
    // By name and not by class, so that versions from two installed copies of this package compare as well.
    if (other?.library !== this.library) {
      throw new TypeError(`expected a version of ${this.library}, got ${describeValue(other)}`)
    }
    return this.major - other.major || this.minor - other.minor || this.patch - other.patch
  }

  /** Whether this version is the other one or newer. */
  atLeast(other: LibraryVersion): boolean
  atLeast(major: number, minor?: number, patch?: number): boolean
  atLeast(other: LibraryVersion | number, minor = 0, patch = 0): boolean {
    if (typeof other !== 'number') return this.compare(other) >= 0
    checkParts(other, minor, patch)
    return (this.major - other || this.minor - minor || this.patch - patch) >= 0
  }

  toString(): string {
    return `${this.major}.${this.minor}.${this.patch}`
  }

  toJSON(): string {
    return this.toString()
  }
}

/** Refuses version parts that are not whole numbers from 0. */
export function checkParts(...parts: readonly unknown[]): void {
  for (const part of parts) {
    if (typeof part !== 'number' || !Number.isInteger(part) || part < 0) {
      throw new RangeError(`a part of a version is a whole number from 0, got ${describeValue(part)}`)
    }
  }
}

/** Refuses parts that would run into their neighbour in the library's number. */
export function checkLimits(library: string, parts: readonly number[], limits: readonly number[]): void {
  for (const [index, limit] of limits.entries()) {
    const part = parts[index] as number
    if (part > limit)
      throw new RangeError(`a ${library} version cannot hold ${part} in part ${index + 1} (at most ${limit})`)
  }
}

/** The parts of a version as people write it, such as `'2.30.7'`; a leading `v` and anything after the numbers is ignored. */
export function parseParts(text: string): readonly [number, number, number] {
  const match = /^\s*v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d])/.exec(String(text))
  if (match === null) {
    throw new RangeError(`cannot read a version from ${describeValue(text)}; expected one like 12.8 or 2.30.7`)
  }
  return [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)]
}

/** Refuses numbers that no version of the library has. */
export function checkVersionNumber(value: unknown, library: string, least: number): asserts value is number {
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw new TypeError(`the number of a ${library} version must be a whole number, got ${describeValue(value)}`)
  }
  if (value < least || value > 0x7fff_ffff) throw new RangeError(`${value} is not the number of a ${library} version`)
}
