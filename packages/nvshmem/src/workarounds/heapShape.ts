import type { Environment } from './environment.js'
import { sizeOf } from './sizes.js'

const MiB = 2 ** 20
const GiB = 2 ** 30

/** How NVSHMEM's heap gets its memory, according to the environment. */
export interface HeapShape {
  /** The heap grows by multiples of this; 0 means that it is complete from the start. */
  readonly step: number
  /** Maximum size in bytes, and the variable that sets it. */
  readonly limit: number
  readonly limitedBy: string
}

/**
 * Returns the shape of the heap.
 *
 * @param isSoftware whether it is the software device's heap, whose default step is smaller.
 */
export function heapShape(environment: Environment, isSoftware: boolean): HeapShape {
  const isWhole = isSet(environment['NVSHMEM_DISABLE_CUDA_VMM']) || environment['NVSHMEM_HEAP_KIND'] === 'SYSMEM'
  if (isWhole && !isSoftware) {
    return { step: 0, limit: sizeOf(environment, 'NVSHMEM_SYMMETRIC_SIZE', GiB), limitedBy: 'NVSHMEM_SYMMETRIC_SIZE' }
  }
  const asked = sizeOf(environment, 'NVSHMEM_CUMEM_GRANULARITY', isSoftware ? 2 * MiB : 512 * MiB)
  // At least a page of the device, at most the size that network adapters register at once.
  const step = Math.min(Math.max(asked, 2 * MiB), 2 * GiB)
  const limitedBy = 'NVSHMEM_MAX_MEMORY_PER_GPU'
  return { step, limit: Math.ceil(sizeOf(environment, limitedBy, 128 * GiB) / step) * step, limitedBy }
}

/** True for values that NVSHMEM reads as yes. */
function isSet(value: string | undefined): boolean {
  return value !== undefined && !/^[0nf]/i.test(value)
}
