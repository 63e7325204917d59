import type { UnboundSpec } from '../spec/types.js'

/**
 * Functions that the library exports but no header declares, and how their prototypes are known. All have neither
 * parameters nor a result.
 */
export const undeclaredNccl: Readonly<Record<string, string>> = {
  ncclResetDebugInitInternal:
    'No header declares it. Its code in 2.30.7 reads no argument, takes the lock of the debug state, marks the level as not read yet and leaves no result. It is no part of the public interface and may go.',
}

/**
 * Records in device memory. The headers define them, but only kernels may access them; the host has handles to them.
 */
export const deviceRecords: readonly string[] = ['ncclWindow_vidmem', 'ncclSegmentWindow']

/** Exported but not bound: a second name of each declared function. */
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
