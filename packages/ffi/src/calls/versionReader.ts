import type { NativeLibrary } from '../library/nativeLibrary.js'
import { putI32, putPointer } from './arguments.js'
import { bindCall } from './bind.js'
import { nestedCall } from './nestedCall.js'

/** Version numbering of each library: CUDA 13000 is 13.0, NCCL 23007 is 2.30.7, NVSHMEM 30405 is 3.4.5. */
const steps = { cuda: [1000, 10], nccl: [10_000, 100, 1], nvshmem: [10_000, 100, 1] } as const

/** Options of {@link versionReader}. */
export interface VersionReaderOptions {
  /** Version of libraries that lack the function. Default: unknown. */
  readonly without?: number
  /** The function returns no status. Default: false. */
  readonly returnsNothing?: boolean
  /** The function takes the number of a part, and stores that part. Default: false. */
  readonly byPart?: boolean
}

/**
 * Makes the `versionOf` of `defineLibrary` for a C function that stores the version.
 *
 * @param symbol the C function. It takes the addresses of `parts` values of type `int`, or a number and one address.
 * @param parts 1: the version as one number; 2 or 3: major, minor and patch, each in a separate `int`
 * @param format how to combine the parts into one number
 * @returns a function that returns `undefined` if the library lacks the symbol or the call fails
 */
export function versionReader(
  symbol: string,
  parts: 1 | 2 | 3,
  format: keyof typeof steps,
  { without, returnsNothing = false, byPart = false }: VersionReaderOptions = {},
): (library: NativeLibrary) => number | undefined {
  let known: number | undefined
  return (library) => {
    if (known !== undefined) return known
    const address = library.rawSymbol(symbol)
    if (address === undefined) return without
    const cells = Array.from({ length: parts }, () => new Int32Array(1))
    const call = bindCall(address, byPart ? 2 : parts, returnsNothing ? 'void' : 'i32', symbol)
    const statuses = byPart
      ? cells.map((cell, part) =>
          nestedCall(() => {
            putI32(0, part, symbol, 'part')
            putPointer(1, cell, symbol, 'version')
          }, call),
        )
      : [
          nestedCall(() => {
            for (const [index, cell] of cells.entries()) putPointer(index, cell, symbol, 'version')
          }, call),
        ]
    if (!returnsNothing && statuses.some((status) => status !== 0)) return undefined
    const values = cells.map(([value = 0]) => value)
    known = parts === 1 ? values[0] : values.reduce((sum, value, index) => sum + value * (steps[format][index] ?? 1), 0)
    return known
  }
}
