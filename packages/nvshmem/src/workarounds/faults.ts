import { NvshmemVersion } from '@shoal/types'

interface KnownFault {
  /** The first version without it; undefined while none is known. */
  readonly goneIn: NvshmemVersion | undefined
}

/**
 * Faults of NVSHMEM that were found in 3.4.5 and that this folder works around, each with the condition under which its
 * workaround goes. The GPU job nvshmem-faults asks a library from C.
 */
const faults = {
  /**
   * `nvshmem_malloc` ends the process where the heap cannot grow. The check before it knows the heap of 3.4 and might
   * refuse what another version has room for, so it is for versions before 3.5 alone. It goes when those are no longer
   * supported.
   */
  heapGrowth: { goneIn: NvshmemVersion.of(3, 5) },
  /**
   * Reductions that need more than their scratch memory come out wrong without a word. Newer versions are taken to do
   * so too, since a wrong guess would cost wrong results. It goes when nvshmem-faults finds right ones: that version is
   * `goneIn`.
   */
  reduceScratch: { goneIn: undefined },
} as const satisfies { readonly [fault: string]: KnownFault }

/** Whether a version has a fault that is worked around. */
export function hasFault(fault: keyof typeof faults, version: NvshmemVersion): boolean {
  const { goneIn }: KnownFault = faults[fault]
  return goneIn === undefined || !version.atLeast(goneIn)
}
