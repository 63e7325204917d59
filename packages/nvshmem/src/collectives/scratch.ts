import { sizeOf } from '../session/sizes.js'

const variable = 'NVSHMEM_REDUCE_SCRATCH_SIZE'
const byDefault = 512 * 1024

/** Bytes that NVSHMEM keeps for each team to put what other PEs send while it reduces. */
export function reduceScratchOf(environment: Readonly<NodeJS.ProcessEnv>): number {
  return sizeOf(environment, variable, byDefault)
}

/**
 * Refuses a reduceScatter whose parts have no room in the scratch memory, half of which serves one call. NVSHMEM does not
 * look: it writes on into what other collectives need, and those come out wrong later.
 *
 * @param bytes of the part of one PE.
 */
export function requireScratch(bytes: number, peCount: number, scratch: number, api: string): void {
  if (peCount === 1 || bytes * peCount <= scratch / 2) return
  throw new RangeError(
    `${api}: ${peCount} parts of ${bytes} bytes have no room in the ${scratch / 2} bytes that NVSHMEM keeps for them; ` +
      `${variable}, set to twice as many and the same for all PEs before NVSHMEM is first called, gives more`,
  )
}

/**
 * How many elements a reduction in place may have. With three PEs and more NVSHMEM sends larger ones in rounds, the later
 * of which send what the earlier have computed already. Each round of a PE fills at most a sixteenth of the scratch memory.
 *
 * @returns 0 when there is no room even for one.
 */
export function mostInPlace(elementBytes: number, peCount: number, scratch: number): number {
  if (peCount <= 2) return Number.POSITIVE_INFINITY
  const elements = Math.floor(scratch / 16 / (peCount - 1) / elementBytes)
  // Whole words of 16 bytes, so that every part is aligned as the whole is.
  const word = 16 / elementBytes
  return elements < word ? elements : elements - (elements % word)
}

export function scratchTooSmall(scratch: number, peCount: number, api: string): RangeError {
  return new RangeError(
    `${api}: with ${peCount} PEs the ${scratch} bytes of ${variable} are too few for a reduction in place`,
  )
}
