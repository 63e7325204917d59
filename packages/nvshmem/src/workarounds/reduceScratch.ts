import type { NvshmemVersion } from '@shoal/types'
import type { Environment } from './environment.js'
import { hasFault } from './faults.js'
import { sizeOf } from './sizes.js'

const variable = 'NVSHMEM_REDUCE_SCRATCH_SIZE'
const byDefault = 512 * 1024
/** NVSHMEM splits the scratch memory into sixteen parts of whole 8-byte words. */
const unit = 128

/**
 * Returns NVSHMEM's scratch bytes per team, for data that other PEs send during a reduction.
 *
 * 0 if NVSHMEM cannot parse the variable, which it reports on stderr. Undefined for versions that reduce any number of
 * elements correctly.
 */
export function reduceScratchOf(environment: Environment, version: NvshmemVersion): number | undefined {
  return hasFault('reduceScratch', version) ? sizeOf(environment, variable, byDefault, 0) : undefined
}

/**
 * Throws for a reduceScatter whose parts exceed the scratch memory, half of which serves one call.
 *
 * NVSHMEM does not check this: it overwrites memory of other collectives, whose results are wrong later.
 *
 * @param bytes size of the part of one PE.
 */
export function requireScratch(bytes: number, peCount: number, scratch: number | undefined, api: string): void {
  if (scratch === undefined) return
  // The second half begins at a whole 8-byte word.
  const half = Math.floor(scratch / 16) * 8
  if (peCount === 1 || bytes * peCount <= half) return
  const needed = Math.ceil((2 * bytes * peCount) / unit) * unit
  throw new RangeError(
    `${api}: ${peCount} parts of ${bytes} bytes have no room in the ${half} bytes that NVSHMEM keeps for them; ` +
      `${variable}=${needed}, the same for all PEs and set before NVSHMEM is first called, would be enough`,
  )
}

/**
 * Returns how many elements NVSHMEM reduces correctly in one call; 0 if not even one.
 *
 * It sends rounds of a sixteenth of the scratch memory. If this is not a whole number of elements, it loses the rest of
 * each round. In place with three or more PEs, later rounds send results that were already computed, so the data of all
 * PEs must fit in one round.
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
  // Whole 16-byte words, so that every part has the alignment of the whole.
  const word = 16 / elementBytes
  return elements < word ? elements : elements - (elements % word)
}

export function scratchTooSmall(scratch: number | undefined, peCount: number, api: string): RangeError {
  return new RangeError(
    `${api}: with ${peCount} PEs the ${scratch} bytes of ${variable} are too few for this reduction; ` +
      `${byDefault} are usual`,
  )
}
