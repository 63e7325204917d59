import { type DType, dtypes } from '@shoal/types'
import type { Random } from '../../../support/random.js'
import type { Op as AnyOp } from '../../../support/reduction/values.js'

/** The tested operations. `sendRecv` passes elements around the ring of ranks. */
export type Collective =
  | 'allReduce'
  | 'reduce'
  | 'reduceScatter'
  | 'broadcast'
  | 'allGather'
  | 'allToAll'
  | 'gather'
  | 'scatter'
  | 'sendRecv'

export type Op = Exclude<AnyOp, 'and' | 'or' | 'xor'>

/** One call of one collective on every rank, as data that the processes agree on. */
export interface Trial {
  readonly collective: Collective
  readonly dtype: DType
  /** Only reductions have an op. */
  readonly op: Op | undefined
  /** Elements as NCCL counts them. If the buffers differ, they are those of the smaller one. */
  readonly count: number
  readonly inPlace: boolean
  readonly root: number
  /** The seed of the values. */
  readonly seed: number
}

const reductions: readonly Collective[] = ['allReduce', 'reduce', 'reduceScatter']
const moves: readonly Collective[] = ['broadcast', 'allGather', 'allToAll', 'gather', 'scatter', 'sendRecv']
const neverInPlace: readonly Collective[] = ['allToAll', 'sendRecv']
const ops: readonly Op[] = ['sum', 'prod', 'min', 'max', 'avg', 'preMulSum']

/** The types that NCCL can reduce. */
export const reducible: readonly DType[] = [
  'i8',
  'u8',
  'i32',
  'u32',
  'i64',
  'u64',
  'f16',
  'bf16',
  'f8e4m3',
  'f8e5m2',
  'f32',
  'f64',
]

export function isReduction(collective: Collective): boolean {
  return reductions.includes(collective)
}

/** Returns the counts of one run: zero, one, an odd count and a large one. */
export function sampleCounts(random: Random, large: number): readonly number[] {
  return [0, 1, 2 * random.integer(1, 1000) + 1, large + random.integer(1, 99)]
}

/** Returns every collective, dtype, op and count, in place and out of place, in random order. */
export function everyTrial(random: Random, large: number): Trial[] {
  const counts = sampleCounts(random, large)
  const trials: Trial[] = []
  const add = (collective: Collective, dtype: DType, op: Op | undefined): void => {
    for (const count of counts) {
      for (const inPlace of neverInPlace.includes(collective) ? [false] : [false, true]) {
        trials.push({ collective, dtype, op, count, inPlace, root: random.integer(0, 255), seed: random.word() })
      }
    }
  }
  for (const collective of reductions) {
    for (const dtype of reducible) for (const op of ops) add(collective, dtype, op)
  }
  for (const collective of moves) for (const dtype of dtypes) add(collective, dtype, undefined)
  return random.shuffled(trials)
}

/** Is true if every rank can have its buffers at the same offset of a window. */
export function isSymmetric({ collective, inPlace }: Trial): boolean {
  if (inPlace) return collective === 'allReduce'
  return collective === 'allReduce' || collective === 'allGather' || collective === 'reduceScatter'
}

/** Returns each collective with `count` elements, which take every path through NCCL. */
export function hugeTrials(random: Random, count: number): Trial[] {
  return [...reductions, ...moves].map((collective) => ({
    collective,
    dtype: random.integer(0, 1) === 0 ? 'f32' : 'bf16',
    op: isReduction(collective) ? 'sum' : undefined,
    count: count + random.integer(1, 99),
    inPlace: false,
    root: random.integer(0, 255),
    seed: random.word(),
  }))
}

/** Describes a trial for a failure report. */
export function describeTrial(trial: Trial, worldSize: number): string {
  const { collective, dtype, op, count, inPlace, root, seed } = trial
  const what = op === undefined ? collective : `${collective} ${op}`
  const place = inPlace ? ', in place' : ''
  return `${what} of ${count} ${dtype}${place}, root ${root % worldSize} of ${worldSize} ranks, seed ${seed}`
}
