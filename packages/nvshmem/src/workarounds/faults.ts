import { NvshmemVersion } from '@shoal/types'

interface KnownFault {
  /** First version without the fault; undefined if none is known. */
  readonly goneIn: NvshmemVersion | undefined
}

/**
 * Known faults of NVSHMEM 3.4.5, with the condition for removing each workaround.
 *
 * The GPU job nvshmem-faults tests a library for them from C.
 */
const faults = {
  /**
   * `nvshmem_malloc` ends the process if the heap cannot grow.
   *
   * The check before it models the heap of 3.4 and could refuse memory that another version has, so it applies only to
   * versions before 3.5. Remove it when those are no longer supported.
   */
  heapGrowth: { goneIn: NvshmemVersion.of(3, 5) },
  /**
   * Reductions that exceed their scratch memory silently return wrong results.
   *
   * Newer versions are assumed to have the fault, because a wrong guess would cost wrong results. When nvshmem-faults
   * finds correct results, set `goneIn` to that version.
   */
  reduceScratch: { goneIn: undefined },
} as const satisfies { readonly [fault: string]: KnownFault }

/** True if a version has a fault that needs a workaround. */
export function hasFault(fault: keyof typeof faults, version: NvshmemVersion): boolean {
  const { goneIn }: KnownFault = faults[fault]
  return goneIn === undefined || !version.atLeast(goneIn)
}
