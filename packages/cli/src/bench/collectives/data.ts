import type { DeviceBuffer, Stream } from '@shoal/driver'
import { decodeArray, dtypeInfo, encodeArray, type StorageArray } from '@shoal/types'
import type { BenchType, Reduction } from '../options.js'
import type { PatternKernels } from '../patternKernels.js'
import type { Source } from './operations.js'

/** Elements after which the data of a part repeats. A prime, so that misplaced data do not match by chance. */
const longestPeriod = 65_521
/** Size of the longest pattern of the widest type, in bytes. */
export const patternBytes = 8 * longestPeriod
/** Approximate bytes per piece when reading results back. */
const pieceBytes = 8 * 2 ** 20
/** Largest exact sums, whatever the order of additions. */
const exactSums: { readonly [T in BenchType]?: number } = {
  f8e5m2: 8,
  f8e4m3: 16,
  i8: 127,
  u8: 255,
  bf16: 256,
  f16: 2048,
}
/** Bits of the significand, including the leading one. */
const precisions: { readonly [T in BenchType]?: number } = { f8e5m2: 3, f8e4m3: 4, bf16: 8, f16: 11, f32: 24, f64: 53 }

/** The data that ranks send and the expected results; every rank can compute both. */
export class BenchData {
  readonly #type: BenchType
  readonly #op: Reduction
  readonly #worldSize: number
  readonly #period: number
  readonly #patterns = new Map<string, StorageArray>()

  /** @param longest - elements of the longest part */
  constructor(type: BenchType, op: Reduction, worldSize: number, longest: number) {
    this.#type = type
    this.#op = op
    this.#worldSize = worldSize
    this.#period = Math.min(longest, longestPeriod)
  }

  /** Queues writing part `part` of rank `rank` to `target`. */
  fill(target: DeviceBuffer, rank: number, part: number, kernels: PatternKernels): void {
    kernels.fill(target, this.#pattern({ rank, part }))
  }

  /** Counts the wrong elements of `result`: on its device, then on the host if any bit differs. */
  async wrong(result: DeviceBuffer, source: Source, kernels: PatternKernels, stream: Stream): Promise<number> {
    const pattern = this.#pattern(source)
    if ((await kernels.countDifferent(result, pattern)) === 0) return 0
    const bytes = dtypeInfo(this.#type).bytes
    const periods = Math.min(Math.floor(pieceBytes / bytes / this.#period), Math.ceil(result.length / this.#period))
    const expected = repeat(pattern, periods)
    let wrong = 0
    for (let start = 0; start < result.length; start += expected.length) {
      const piece = result.slice(start, Math.min(result.length, start + expected.length))
      const found = (await piece.toArray({ stream })) as StorageArray
      const wanted = expected.subarray(0, found.length) as StorageArray
      wrong += this.#countWrong(found, wanted, 'rank' in source)
    }
    return wrong
  }

  #countWrong(found: StorageArray, wanted: StorageArray, isCopy: boolean): number {
    const decoded = (array: StorageArray): ArrayLike<number | bigint> => decodeArray(this.#type, array as never)
    const [values, references] = [decoded(found), decoded(wanted)]
    const tolerance = isCopy ? 0 : this.#tolerance
    let wrong = 0
    for (let i = 0; i < values.length; i += 1) {
      const [value, reference] = [Number(values[i]), Number(references[i])]
      if (!(Math.abs(value - reference) <= Math.abs(reference) * tolerance)) wrong += 1
    }
    return wrong
  }

  /** Only floating-point averages are inexact: NCCL multiplies by 1/n and rounds for each rank. */
  get #tolerance(): number {
    const precision = precisions[this.#type]
    if (this.#op !== 'avg' || precision === undefined) return 0
    return this.#worldSize * 2 ** (1 - precision)
  }

  #pattern(source: Source): StorageArray {
    const key = 'rank' in source ? `${source.rank} ${source.part}` : `all ${source.part}`
    const known = this.#patterns.get(key)
    if (known !== undefined) return known
    const values = new Float64Array(this.#period)
    for (let i = 0; i < this.#period; i += 1)
      values[i] = 'rank' in source ? this.#value(source.rank, source.part, i) : this.#combined(source.part, i)
    const made = encode(this.#type, values)
    this.#patterns.set(key, made)
    return made
  }

  #value(rank: number, part: number, i: number): number {
    const noise = Math.imul(i + 1, 0x9e37_79b1) ^ Math.imul(rank + 1, 0x85eb_ca77) ^ Math.imul(part + 1, 0xc2b2_ae3d)
    // Mixed; otherwise the last bits of two ranks would be equal everywhere, or nowhere.
    const mixed = Math.imul(noise ^ (noise >>> 15), 0x2c1b_3c6d)
    const random = (mixed ^ (mixed >>> 15)) >>> 0
    // Products of powers of 2 are small and exact.
    if (this.#op === 'prod') return rank < 6 ? 1 + (random & 1) : 1
    const most = exactSums[this.#type] ?? 2 ** 24
    // With more ranks than `most`, only the first ones contribute.
    if (rank >= most) return 0
    return random % (Math.max(1, Math.min(16, Math.floor(most / this.#worldSize))) + 1)
  }

  #combined(part: number, i: number): number {
    let result = this.#value(0, part, i)
    for (let rank = 1; rank < this.#worldSize; rank += 1) result = this.#combine(result, this.#value(rank, part, i))
    if (this.#op !== 'avg') return result
    const mean = result / this.#worldSize
    return precisions[this.#type] === undefined ? Math.trunc(mean) : mean
  }

  #combine(one: number, other: number): number {
    switch (this.#op) {
      case 'prod':
        return one * other
      case 'max':
        return Math.max(one, other)
      case 'min':
        return Math.min(one, other)
      default:
        return one + other
    }
  }
}

function encode(type: BenchType, values: Float64Array): StorageArray {
  const isWide = type === 'i64' || type === 'u64'
  return isWide ? encodeArray(type, Array.from(values, BigInt)) : encodeArray(type, values)
}

function repeat(pattern: StorageArray, times: number): StorageArray {
  const long = Reflect.construct(pattern.constructor, [pattern.length * times]) as StorageArray
  for (let i = 0; i < times; i += 1) long.set(pattern as never, i * pattern.length)
  return long
}
