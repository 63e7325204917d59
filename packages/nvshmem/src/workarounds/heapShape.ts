import type { Environment } from './environment.js'
import { sizeOf } from './sizes.js'

const MiB = 2 ** 20
const GiB = 2 ** 30

/** How NVSHMEM's heap gets its memory, as the environment of the process tells it. */
export interface HeapShape {
  /** The heap grows by multiples of this; 0: all of it is there from the start. */
  readonly step: number
  /** The most that it may have, in bytes, and the variable that says so. */
  readonly limit: number
  readonly limitedBy: string
}

/** @param isSoftware whether it is the software device's, which grows by what is needed when nothing is said. */
export function heapShape(environment: Environment, isSoftware: boolean): HeapShape {
  const isWhole = isSet(environment['NVSHMEM_DISABLE_CUDA_VMM']) || environment['NVSHMEM_HEAP_KIND'] === 'SYSMEM'
  if (isWhole && !isSoftware) {
    return { step: 0, limit: sizeOf(environment, 'NVSHMEM_SYMMETRIC_SIZE', GiB), limitedBy: 'NVSHMEM_SYMMETRIC_SIZE' }
  }
  const asked = sizeOf(environment, 'NVSHMEM_CUMEM_GRANULARITY', isSoftware ? 2 * MiB : 512 * MiB)
  // No smaller than a page of the device, and no larger than what network adapters register at once.
  const step = Math.min(Math.max(asked, 2 * MiB), 2 * GiB)
  const limitedBy = 'NVSHMEM_MAX_MEMORY_PER_GPU'
  return { step, limit: Math.ceil(sizeOf(environment, limitedBy, 128 * GiB) / step) * step, limitedBy }
}

/** What NVSHMEM takes for yes. */
function isSet(value: string | undefined): boolean {
  return value !== undefined && !/^[0nf]/i.test(value)
}
