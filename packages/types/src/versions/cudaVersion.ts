import { outOfRange } from '../arguments/scalars.js'
import { LibraryVersion, parseParts, requireParts, requireVersionNumber } from './libraryVersion.js'

const partsOf = (value: number) => [Math.trunc(value / 1000), Math.trunc((value % 1000) / 10)] as const

/**
 * Formats a CUDA version number: 12080 becomes `12.8`.
 *
 * Accepts any `int` from 0, also numbers that {@link CudaVersion} refuses. @throws TypeError, RangeError
 */
export function formatCudaVersion(value: number): string {
  return partsOf(requireVersionNumber(value, 'formatCudaVersion', 0)).join('.')
}

/**
 * A version of CUDA from `cuDriverGetVersion` or `cudaRuntimeGetVersion`.
 *
 * @example
 * CudaVersion.from(12080).atLeast(12, 4) // true
 */
export class CudaVersion extends LibraryVersion {
  readonly library = 'cuda'

  /**
   * Returns the version of CUDA's number: 12080 is 12.8.
   *
   * @throws RangeError when it is not a version, such as 0, which means "no driver installed"
   */
  static from(value: number): CudaVersion {
    requireVersionNumber(value, 'CudaVersion.from', 1000)
    return new CudaVersion(value, ...partsOf(value), 0)
  }

  /** Returns the version of major and minor: `of(12, 8)`. */
  static of(major: number, minor = 0): CudaVersion {
    requireParts('CudaVersion.of', major, minor)
    if (major === 0) throw outOfRange('CudaVersion.of', 'major', 'an integer from 1 to 999', major)
    return CudaVersion.from(major * 1000 + minor * 10)
  }

  /** Parses text such as `'12.8'`. Ignores a third part, because CUDA's number has only two. */
  static parse(text: string): CudaVersion {
    const [major, minor] = parseParts(text, 'CudaVersion')
    return CudaVersion.of(major, minor)
  }

  /** Returns major and minor, such as `'12.8'`. */
  override toString(): string {
    return `${this.major}.${this.minor}`
  }
}
