import type { DeviceLibraryName } from '../spec/types.js'

/**
 * How an unchecked function takes an argument. `halves`: an object with both halves of 64 bits. `words`: two numbers,
 * the lower half and the upper one. `bigint`. `count`: a number that is not negative. `number`: one that has at most 32
 * bits. `zero`: not at all, because C gets 0. `shape.gridX`: the field `gridX`, at most 32 bits, of an object `shape`.
 */
export type Form = 'halves' | 'words' | 'bigint' | 'count' | 'number' | 'zero' | `${string}.${string}`

/** A function that hot paths call without checks. */
export interface UncheckedCall {
  readonly name: string
  /** Parameters with another form than the usual one: `halves` for addresses, `count` for sizes. */
  readonly forms?: Readonly<Record<string, Form>>
  /** The first argument is the context of the call. */
  readonly inContext?: true
  /** What the generated function is called. Default: the name in C and `Unchecked`. */
  readonly as?: string
}

/** The unchecked functions of a library. */
export interface UncheckedFile {
  readonly library: DeviceLibraryName
  /** Below `packages`. */
  readonly path: string
  readonly functions: readonly UncheckedCall[]
}

const launchShape = {
  gridDimX: 'shape.gridX',
  gridDimY: 'shape.gridY',
  gridDimZ: 'shape.gridZ',
  blockDimX: 'shape.blockX',
  blockDimY: 'shape.blockY',
  blockDimZ: 'shape.blockZ',
  sharedMemBytes: 'shape.sharedMemory',
} as const

/** A package gets the functions that it calls, beside its own sources: they are no part of a public API. */
export const uncheckedCalls: readonly UncheckedFile[] = [
  {
    library: 'driver',
    path: 'driver/src/core/calls/uncheckedCalls.gen.ts',
    functions: [{ name: 'cuLaunchKernel', inContext: true, forms: { ...launchShape, extra: 'zero' } }],
  },
]
