import type { Comparison, ReduceOp } from '@shoal/nvshmem'
import { type DType, dtypeInfo, dtypes } from '@shoal/types'
import type { Random } from '../../support/random.js'

/** How a call is made: awaited, blocking, started and completed by quiet, or queued on a stream. */
export type Way = 'wait' | 'sync' | 'nonBlocking' | 'stream' | 'nonBlockingStream'

/** The local side of a transfer. */
export type Local = 'array' | 'device' | 'symmetric'

export type Atomic =
  | 'fetch'
  | 'set'
  | 'swap'
  | 'compareSwap'
  | 'increment'
  | 'fetchIncrement'
  | 'add'
  | 'fetchAdd'
  | 'and'
  | 'fetchAnd'
  | 'or'
  | 'fetchOr'
  | 'xor'
  | 'fetchXor'

/** The PEs that take part in a collective. */
export type TeamName = 'world' | 'shared' | 'node' | 'everySecond'

interface Common {
  readonly dtype: DType
  readonly way: Way
  /** The number of elements. */
  readonly count: number
  /** The seed of the values, of the other PE and of the root. */
  readonly seed: number
}

interface Transfer extends Common {
  readonly local: Local
}

interface Strided extends Transfer {
  readonly targetStride: number
  readonly sourceStride: number
}

export type Trial =
  | (Transfer & { readonly kind: 'put' })
  | (Transfer & { readonly kind: 'get' })
  | (Strided & { readonly kind: 'putStrided' })
  | (Strided & { readonly kind: 'getStrided' })
  | (Common & { readonly kind: 'putElement' })
  | (Common & { readonly kind: 'getElement' })
  | (Common & { readonly kind: 'putSignal'; readonly signalOp: 'set' | 'add' })
  | (Common & { readonly kind: 'atomic'; readonly atomic: Atomic })
  | (Common & { readonly kind: 'contended' })
  | (Common & { readonly kind: 'signal'; readonly signalOp: 'set' | 'add' })
  | (Common & { readonly kind: 'waitUntil' | 'waitUntilAll' | 'waitUntilAllVector'; readonly comparison: Comparison })
  | (Common & {
      readonly kind: 'broadcast' | 'fcollect' | 'allToAll'
      readonly team: TeamName
      readonly inPlace: boolean
    })
  | (Common & {
      readonly kind: 'reduce' | 'reduceScatter'
      readonly op: ReduceOp
      readonly team: TeamName
      readonly inPlace: boolean
    })

const integers: readonly DType[] = ['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64']
const floats: readonly DType[] = ['f16', 'bf16', 'f32', 'f64']
const wideIntegers: readonly DType[] = ['i32', 'u32', 'i64', 'u64']
const waitable: readonly DType[] = ['i16', 'u16', ...wideIntegers]
const comparisons: readonly Comparison[] = ['==', '!=', '>', '>=', '<', '<=']
const teams: readonly TeamName[] = ['world', 'shared', 'node', 'everySecond']

/** Atomics, and the dtypes that NVSHMEM supports for each. */
const atomics: { readonly [A in Atomic]: readonly DType[] } = {
  fetch: [...wideIntegers, 'f32', 'f64'],
  set: [...wideIntegers, 'f32', 'f64'],
  swap: [...wideIntegers, 'f32', 'f64'],
  compareSwap: wideIntegers,
  increment: wideIntegers,
  fetchIncrement: wideIntegers,
  add: wideIntegers,
  fetchAdd: wideIntegers,
  and: wideIntegers,
  fetchAnd: wideIntegers,
  or: wideIntegers,
  fetchOr: wideIntegers,
  xor: wideIntegers,
  fetchXor: wideIntegers,
}

const reductions: { readonly [O in ReduceOp]: readonly DType[] } = {
  sum: [...integers, ...floats],
  prod: [...integers, ...floats],
  min: [...integers, ...floats],
  max: [...integers, ...floats],
  and: integers,
  or: integers,
  xor: integers,
}

/**
 * The most elements in a part of a reduceScatter that NVSHMEM has room for with eight PEs. All parts together have a
 * quarter of a MiB.
 */
const mostInPart = (dtype: DType): number => 2 ** 15 / dtypeInfo(dtype).bytes

/** Returns every operation with every dtype, in every way, in random order. */
export function everyTrial(random: Random, large: number): Trial[] {
  const trials: Trial[] = []
  const counts = [1, 2 * random.integer(1, 500) + 1, large + random.integer(1, 99)]
  const odd = (): number => 2 * random.integer(1, 200) + 1
  const common = (dtype: DType, way: Way, count: number): Common => ({ dtype, way, count, seed: random.word() })
  const pick = <T>(list: readonly T[]): T => list[random.integer(0, list.length - 1)] as T

  const ways: readonly Way[] = ['wait', 'sync', 'nonBlocking', 'stream', 'nonBlockingStream']
  const waited: readonly Way[] = ['wait', 'sync']
  const strided: readonly Way[] = ['wait', 'sync', 'stream']
  const localsOf = (way: Way): readonly Local[] =>
    waited.includes(way) ? ['array', 'device', 'symmetric'] : ['device', 'symmetric']

  for (const dtype of dtypes) {
    for (const kind of ['put', 'get'] as const) {
      for (const way of ways) {
        for (const local of localsOf(way)) {
          for (const count of [0, ...counts]) trials.push({ ...common(dtype, way, count), kind, local })
        }
      }
    }
    for (const kind of ['putStrided', 'getStrided'] as const) {
      for (const way of strided) {
        for (const local of localsOf(way)) {
          const [targetStride, sourceStride] = [random.integer(1, 5), random.integer(1, 5)]
          trials.push({ ...common(dtype, way, odd()), kind, local, targetStride, sourceStride })
        }
      }
    }
    for (const way of ['stream', 'nonBlockingStream'] as const) {
      for (const signalOp of ['set', 'add'] as const) {
        trials.push({ ...common(dtype, way, pick(counts)), kind: 'putSignal', signalOp })
      }
    }
    for (const kind of ['broadcast', 'fcollect', 'allToAll'] as const) {
      for (const way of strided) {
        for (const count of counts) {
          const inPlace = kind === 'broadcast' && random.integer(0, 1) === 0
          trials.push({ ...common(dtype, way, count), kind, team: pick(teams), inPlace })
        }
      }
    }
  }
  for (const dtype of [...integers, ...floats]) {
    for (const kind of ['putElement', 'getElement'] as const) {
      for (const way of strided) trials.push({ ...common(dtype, way, odd()), kind })
    }
  }
  for (const [atomic, list] of Object.entries(atomics) as [Atomic, readonly DType[]][]) {
    for (const dtype of list) {
      for (const way of waited) trials.push({ ...common(dtype, way, 64), kind: 'atomic', atomic })
    }
  }
  for (const dtype of wideIntegers) trials.push({ ...common(dtype, 'wait', 1), kind: 'contended' })
  for (const signalOp of ['set', 'add'] as const) {
    trials.push({ ...common('u64', 'stream', 64), kind: 'signal', signalOp })
  }
  for (const kind of ['waitUntil', 'waitUntilAll', 'waitUntilAllVector'] as const) {
    for (const dtype of waitable) {
      for (const comparison of comparisons) trials.push({ ...common(dtype, 'stream', 7), kind, comparison })
    }
  }
  for (const [op, list] of Object.entries(reductions) as [ReduceOp, readonly DType[]][]) {
    for (const dtype of list) {
      for (const kind of ['reduce', 'reduceScatter'] as const) {
        for (const way of strided) {
          const inPlace = kind === 'reduce' && random.integer(0, 1) === 0
          const count = kind === 'reduce' ? pick(counts) : Math.min(pick(counts), mostInPart(dtype))
          trials.push({ ...common(dtype, way, count), kind, op, team: pick(teams), inPlace })
        }
      }
    }
  }
  return random.shuffled(trials)
}

/** Returns a key that is equal for trials of the same operation on the same type. */
export function operationOf(trial: Trial): string {
  const { kind, dtype } = trial
  const which =
    kind === 'atomic' ? trial.atomic : 'op' in trial ? trial.op : 'comparison' in trial ? trial.comparison : ''
  return `${kind} ${which} ${dtype}`
}

/** Returns every operation with every dtype at least once, in some way, and `more` further trials. */
export function sampleOf(trials: readonly Trial[], more: number): Trial[] {
  const seen = new Set<string>()
  const first: Trial[] = []
  const rest: Trial[] = []
  for (const trial of trials) {
    const operation = operationOf(trial)
    if (seen.has(operation)) rest.push(trial)
    else first.push(trial)
    seen.add(operation)
  }
  return [...first, ...rest.slice(0, more)]
}

/** Describes a trial for a failure report. */
export function describeTrial(trial: object): string {
  return Object.entries(trial)
    .map(([key, value]) => `${key} ${value}`)
    .join(', ')
}
