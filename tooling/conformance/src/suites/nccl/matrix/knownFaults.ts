import { dtypeInfo } from '@shoal/types'
import type { Trial } from './trial.js'

/** Where a trial runs on GPUs. */
export interface TrialPlace {
  /** As `ncclGetVersion` gives it. */
  readonly version: number
  readonly worldSize: number
  /** Whether the buffers lie in windows that all ranks opened. */
  readonly inWindow: boolean
}

/** What a fault is of; of a trial that is what counts. */
export type FaultyCall = Pick<Trial, 'collective' | 'dtype' | 'op' | 'count' | 'inPlace'>

/** The releases that were asked. */
const observed = { older: 22803, newer: 23007 } as const

/**
 * What NCCL itself does wrong: such trials are counted and left out. Each rule is of what came out wrong on an H200
 * with the release that it names, and of nothing else; other releases are asked again. The GPU job nccl-faults asks the
 * same of NCCL from C.
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
  // C asked reductions of f16, f8e4m3 and f8e5m2; the run over all types met f32.
  const isMet = collective === 'allGather' || (collective === 'reduceScatter' && kind === 'float')
  if (isMet && (count * bytes) % 8 !== 0) {
    return 'parts within windows that are no multiple of 8 bytes came out wrong on an H200 with 2.28.3'
  }
  return undefined
}

/** A rank alone copies, unless it has to multiply: for preMulSum always, for avg of floats by 1. */
function faultOfOneRank({ dtype, op, count, inPlace }: FaultyCall, version: number): string | undefined {
  const isFloat = dtypeInfo(dtype).kind === 'float'
  if (op !== 'preMulSum' && !(op === 'avg' && isFloat)) return undefined
  if (count === 0) return undefined
  if (dtype === 'f8e4m3' || dtype === 'f8e5m2') {
    if (version !== observed.older && version !== observed.newer) return undefined
    return 'one rank alone multiplies no 8-bit floats: refused on an H200 with 2.28.3 and 2.30.7'
  }
  if (version !== observed.older) return undefined
  // Times 1, what is left out is right already where it is.
  if (op === 'avg' && inPlace) return undefined
  if (!leavesTail(count, dtypeInfo(dtype).bytes)) return undefined
  return 'one rank alone leaves out the last elements of many: came out wrong on an H200 with 2.28.3'
}

/**
 * The work is distributed to a block of threads for every 16 KiB, at most 32 of them, in parts of whole 16 bytes. What
 * is left when the count is divided by the blocks finds no place where the parts had no need to be rounded up
 * (github.com/NVIDIA/nccl/issues/1950, mended in 2.29.7).
 */
function leavesTail(count: number, bytes: number): boolean {
  const blocks = Math.min(32, Math.ceil((count * bytes) / 16_384))
  const pack = 16 / bytes
  const part = Math.ceil(Math.floor(count / blocks) / pack) * pack
  return part * blocks < count
}
