import type { NvshmemVersion } from '@shoal/types'
import type { Environment } from './environment.js'
import { hasFault } from './faults.js'
import { sizeOf } from './sizes.js'

const variable = 'NVSHMEM_REDUCE_SCRATCH_SIZE'
const byDefault = 512 * 1024
/** NVSHMEM cuts it into sixteen parts of whole numbers of eight bytes. */
const unit = 128

/**
 * Bytes that NVSHMEM keeps for each team to put what other PEs send while it reduces: none where it cannot read how
 * many, which it says on the error stream. Undefined for versions that reduce rightly whatever the number.
 */
export function reduceScratchOf(environment: Environment, version: NvshmemVersion): number | undefined {
  return hasFault('reduceScratch', version) ? sizeOf(environment, variable, byDefault, 0) : undefined
}

/**
 * Throws for a reduceScatter whose parts have no room in the scratch memory, half of which serves one call. NVSHMEM
 * does not look: it writes on into what other collectives need, and those come out wrong later.
 *
 * @param bytes of the part of one PE.
 */
export function requireScratch(bytes: number, peCount: number, scratch: number | undefined, api: string): void {
  if (scratch === undefined) return
  // The second half begins at a whole number of eight bytes.
  const half = Math.floor(scratch / 16) * 8
  if (peCount === 1 || bytes * peCount <= half) return
  const needed = Math.ceil((2 * bytes * peCount) / unit) * unit
  throw new RangeError(
    `${api}: ${peCount} parts of ${bytes} bytes have no room in the ${half} bytes that NVSHMEM keeps for them; ` +
      `${variable}=${needed}, the same for all PEs and set before NVSHMEM is first called, would be enough`,
  )
}

/**
 * How many elements NVSHMEM reduces rightly in one call. It sends rounds of a sixteenth of the scratch memory, and
 * where that is no whole number of elements it loses the rest of each. In place with three PEs and more, rounds after
 * the first send what that has computed already: all PEs have to fit into it.
 *
 * @returns 0 when there is no room even for one.
 */
export function maxElementsPerCall(
  elementBytes: number,
  peCount: number,
  scratch: number | undefined,
  isInPlace: boolean,
): number {
  if (scratch === undefined) return Number.POSITIVE_INFINITY
  const round = Math.floor(scratch / 16)
  const isSentTwice = isInPlace && peCount > 2
  const isExact = round > 0 && round % elementBytes === 0
  if (!isSentTwice && (isExact || peCount === 1)) return Number.POSITIVE_INFINITY
  const elements = Math.floor(round / (isSentTwice ? peCount - 1 : 1) / elementBytes)
  // Whole words of 16 bytes, so that every part is aligned as the whole is.
  const word = 16 / elementBytes
  return elements < word ? elements : elements - (elements % word)
}

export function scratchTooSmall(scratch: number | undefined, peCount: number, api: string): RangeError {
  return new RangeError(
    `${api}: with ${peCount} PEs the ${scratch} bytes of ${variable} are too few for this reduction; ` +
      `${byDefault} are usual`,
  )
}
