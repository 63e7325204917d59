import { dtypeInfo } from '@shoal/types'
import type { Trial } from './trial.js'

/** Where a trial runs on GPUs. */
export interface TrialPlace {
  /** The value that `ncclGetVersion` returns. */
  readonly version: number
  readonly worldSize: number
  /** Whether the buffers are in windows that all ranks opened. */
  readonly inWindow: boolean
}

/** The properties of a trial that decide if a fault applies. */
export type FaultyCall = Pick<Trial, 'collective' | 'dtype' | 'op' | 'count' | 'inPlace'>

/** The releases that were tested. */
const observed = { older: 22803, newer: 23007 } as const

/**
 * Returns the reason if NCCL itself fails in a trial. Such trials are counted and not run. Each rule covers only what
 * failed on an H200 with the named release, so other releases are tested again. The GPU job nccl-faults tests the same
 * in C.
 */
export function knownFault(trial: FaultyCall, { version, worldSize, inWindow }: TrialPlace): string | undefined {
  if (worldSize === 1) return faultOfOneRank(trial, version)
  if (!inWindow) return undefined
  const { collective, dtype, op, count } = trial
  const { kind, bytes } = dtypeInfo(dtype)
  if (version === observed.newer) {
    const isMet = collective === 'allReduce' && op === 'avg' && kind === 'float' && dtype !== 'f64'
    if (!isMet || count === 0) return undefined
    return 'avg within windows finds no kernel: refused on an H200 with 2.30.7, cut down to the code for sm_90'
  }
  if (version !== observed.older) return undefined
  // A C program found the fault in reductions of f16, f8e4m3 and f8e5m2. The run over all types found it in f32.
  const isMet = collective === 'allGather' || (collective === 'reduceScatter' && kind === 'float')
  if (isMet && (count * bytes) % 8 !== 0) {
    return 'parts within windows that are no multiple of 8 bytes came out wrong on an H200 with 2.28.3'
  }
  return undefined
}

/**
 * A single rank only copies, except in two cases that multiply: preMulSum, and avg of floats, which multiplies by 1.
 */
function faultOfOneRank({ dtype, op, count, inPlace }: FaultyCall, version: number): string | undefined {
  const isFloat = dtypeInfo(dtype).kind === 'float'
  if (op !== 'preMulSum' && !(op === 'avg' && isFloat)) return undefined
  if (count === 0) return undefined
  if (dtype === 'f8e4m3' || dtype === 'f8e5m2') {
    if (version !== observed.older && version !== observed.newer) return undefined
    return 'one rank alone multiplies no 8-bit floats: refused on an H200 with 2.28.3 and 2.30.7'
  }
  if (version !== observed.older) return undefined
  // The factor is 1, so skipped elements already have the right value in place.
  if (op === 'avg' && inPlace) return undefined
  if (!leavesTail(count, dtypeInfo(dtype).bytes)) return undefined
  return 'one rank alone leaves out the last elements of many: came out wrong on an H200 with 2.28.3'
}

/**
 * NCCL distributes the work to one block of threads for every 16 KiB, at most 32 blocks, in parts of whole 16 bytes.
 * The count divided by the blocks has a remainder. If the parts did not need rounding up, no block gets this remainder
 * (github.com/NVIDIA/nccl/issues/1950, fixed in 2.29.7).
 */
function leavesTail(count: number, bytes: number): boolean {
  const blocks = Math.min(32, Math.ceil((count * bytes) / 16_384))
  const pack = 16 / bytes
  const part = Math.ceil(Math.floor(count / blocks) / pack) * pack
  return part * blocks < count
}
