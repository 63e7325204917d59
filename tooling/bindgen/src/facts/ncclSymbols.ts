import type { UnboundSpec } from '../spec/types.js'

/**
 * Functions that the library exports and no header declares; all without parameters and result, and how that is known.
 */
export const undeclaredNccl: Readonly<Record<string, string>> = {
  ncclResetDebugInitInternal:
    'No header declares it. Its code in 2.30.7 reads no argument, takes the lock of the debug state, marks the level as not read yet and leaves no result. It is no part of the public interface and may go.',
}

/**
 * Records whose inside the headers show but only kernels may look at: they are in device memory. The host has handles
 * to them.
 */
export const deviceRecords: readonly string[] = ['ncclWindow_vidmem', 'ncclSegmentWindow']

/** Exported, but not bound: each declared function once more. */
export function profilerNames(count: number): UnboundSpec {
  return {
    symbol: 'pnccl{name}',
    count,
    exported: true,
    nature: 'function',
    reason:
      'the same functions once more under the names that a profiler calls on to; the names without p are bound, and find a profiler that is loaded before NCCL',
  }
}

export const inlineReason = 'defined in the header and exported by no library: it computes with its arguments alone'
export const deviceReason = 'for kernels alone'
