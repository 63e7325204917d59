import { type DType, dtypeInfo, type TypedArrayOf } from '@shoal/types'
import { bytesOf, numbersOf, type Op, scalarOf, type Values } from './values.js'

/** The expected result of a reduction, by position in the period. */
export type Expected =
  | { readonly kind: 'exact'; readonly bytes: Uint8Array }
  | { readonly kind: 'near'; readonly values: Float64Array; readonly tolerance: Float64Array }

interface Format {
  /** Half the distance from 1 to the next number: the largest relative rounding error. */
  readonly unit: number
  /** The smallest number above zero. */
  readonly smallest: number
}

const formats: { readonly [D in DType]?: Format } = {
  f64: { unit: 2 ** -53, smallest: 2 ** -1074 },
  f32: { unit: 2 ** -24, smallest: 2 ** -149 },
  f16: { unit: 2 ** -11, smallest: 2 ** -24 },
  bf16: { unit: 2 ** -8, smallest: 2 ** -133 },
  f8e4m3: { unit: 2 ** -4, smallest: 2 ** -9 },
  f8e5m2: { unit: 2 ** -3, smallest: 2 ** -16 },
}

/**
 * Computes the result of a reduction. Integers are exact and wrap around. Floats are computed in double precision, with
 * a tolerance.
 */
export function reduced(dtype: DType, op: Op, inputs: readonly Values[]): Expected {
  const format = formats[dtype]
  if (format !== undefined) return floats(format, dtype, op, inputs)
  const result = dtypeInfo(dtype).bytes === 8 ? longs(dtype, op, inputs) : integers(dtype, op, inputs)
  return { kind: 'exact', bytes: bytesOf(result) }
}

function integers(dtype: DType, op: Op, inputs: readonly Values[]): ArrayBufferView {
  const ranks = inputs.map(({ numbers }) => numbers as Float64Array)
  // Storing an element keeps only the bits that fit, so integers wrap around.
  const result = new (dtypeInfo(dtype).typedArray)(lengthOf(ranks)) as Int32Array
  const combine: { readonly [O in Op]: (a: number, b: number) => number } = {
    sum: (a, b) => (a + b) | 0,
    avg: (a, b) => a + b,
    preMulSum: (a, b) => (a + b) | 0,
    prod: Math.imul,
    min: Math.min,
    max: Math.max,
    and: (a, b) => a & b,
    or: (a, b) => a | b,
    xor: (a, b) => a ^ b,
  }
  for (let index = 0; index < result.length; index += 1) {
    let value = 0
    for (const [rank, numbers] of ranks.entries()) {
      const own = numbers[index] as number
      const term = op === 'preMulSum' ? Math.imul(own, scalarOf(dtype, rank) as number) : own
      value = rank === 0 ? term : combine[op](value, term)
    }
    result[index] = op === 'avg' ? Math.trunc(value / ranks.length) : value
  }
  return result
}

function longs(dtype: DType, op: Op, inputs: readonly Values[]): ArrayBufferView {
  const ranks = inputs.map(({ numbers }) => numbers as BigInt64Array)
  const result = new (dtypeInfo(dtype).typedArray)(lengthOf(ranks)) as unknown as BigInt64Array
  const combine: { readonly [O in Op]: (a: bigint, b: bigint) => bigint } = {
    sum: (a, b) => a + b,
    avg: (a, b) => a + b,
    preMulSum: (a, b) => a + b,
    prod: (a, b) => BigInt.asUintN(64, a * b),
    min: (a, b) => (a - b < 0n ? a : b),
    max: (a, b) => (a - b > 0n ? a : b),
    and: (a, b) => a & b,
    or: (a, b) => a | b,
    xor: (a, b) => a ^ b,
  }
  for (let index = 0; index < result.length; index += 1) {
    let value = 0n
    for (const [rank, numbers] of ranks.entries()) {
      const own = numbers[index] as bigint
      const term = op === 'preMulSum' ? own * (scalarOf(dtype, rank) as bigint) : own
      value = rank === 0 ? term : combine[op](value, term)
    }
    result[index] = op === 'avg' ? value / BigInt(ranks.length) : value
  }
  return result
}

/** Returns the period after which the values of all ranks repeat. */
function lengthOf(ranks: readonly ArrayLike<unknown>[]): number {
  return ranks[0]?.length ?? 0
}

/** Returns the largest relative error of this many roundings. */
function growth(roundings: number, unit: number): number {
  return Math.expm1(roundings * Math.log1p(unit))
}

function floats({ unit, smallest }: Format, dtype: DType, op: Op, inputs: readonly Values[]): Expected {
  const ranks = inputs.map(({ numbers }) => numbers as Float64Array)
  const values = new Float64Array(lengthOf(ranks))
  const tolerance = new Float64Array(values.length)
  const steps = ranks.length - 1
  // A mean may be a sum of products with 1/n, and each product is rounded. A pre-multiplied sum rounds its products.
  const roundings = steps + (op === 'avg' ? 2 : op === 'preMulSum' ? 1 : 0)
  // The f64 reference rounds as often as the tested result.
  const slack = dtype === 'f64' ? 2.02 : 1.01
  for (let index = 0; index < values.length; index += 1) {
    const terms = ranks.map((numbers, rank) => {
      const own = numbers[index] as number
      return op === 'preMulSum' ? own * (scalarOf(dtype, rank) as number) : own
    })
    if (op === 'min' || op === 'max') {
      values[index] = op === 'min' ? Math.min(...terms) : Math.max(...terms)
      continue
    }
    if (op === 'prod') {
      const product = terms.reduce((a, b) => a * b, 1)
      values[index] = product
      tolerance[index] = Math.abs(product) * growth(steps, unit) * slack + steps * 2 ** steps * smallest
      continue
    }
    const share = op === 'avg' ? 1 / ranks.length : 1
    values[index] = terms.reduce((a, b) => a + b, 0) * share
    // Each partial sum is at most the sum of magnitudes plus earlier rounding errors.
    const magnitude = terms.reduce((sum, term) => sum + Math.abs(term), 0) * share
    tolerance[index] = magnitude * growth(roundings, unit) * slack + (roundings + 1) * smallest
    if (roundings === 0) tolerance[index] = 0
  }
  return { kind: 'near', values, tolerance }
}

/**
 * Describes the first wrong element, or returns undefined. The first element of `got` has position `start` in the
 * period.
 */
export function difference(dtype: DType, got: Uint8Array, expected: Expected, start: number): string | undefined {
  if (expected.kind === 'exact') return differenceOfBytes(dtype, got, expected.bytes, start)
  const { bytes, typedArray } = dtypeInfo(dtype)
  const aligned = got.slice()
  const bits = new typedArray(aligned.buffer, 0, got.length / bytes) as TypedArrayOf<DType>
  const numbers = numbersOf(dtype, bits) as Float64Array
  const { values, tolerance } = expected
  let place = start % values.length
  for (let index = 0; index < numbers.length; index += 1) {
    const want = values[place] as number
    const allowed = tolerance[place] as number
    if (!(Math.abs((numbers[index] as number) - want) <= allowed)) {
      return `element ${index} of ${numbers.length} is ${numbers[index]}, should be ${want} ± ${allowed}`
    }
    place = place === values.length - 1 ? 0 : place + 1
  }
  return undefined
}

function differenceOfBytes(dtype: DType, got: Uint8Array, want: Uint8Array, start: number): string | undefined {
  const { bytes } = dtypeInfo(dtype)
  for (let at = 0; at < got.length; ) {
    const offset = (start * bytes + at) % want.length
    const length = Math.min(want.length - offset, got.length - at)
    const is = got.subarray(at, at + length)
    const should = want.subarray(offset, offset + length)
    if (Buffer.compare(is, should) !== 0) {
      const first = Math.floor(is.findIndex((byte, index) => byte !== should[index]) / bytes)
      const hex = (from: Uint8Array): string =>
        Buffer.from(from.subarray(first * bytes, (first + 1) * bytes)).toString('hex')
      return `element ${at / bytes + first} of ${got.length / bytes} is 0x${hex(is)}, should be 0x${hex(should)}`
    }
    at += length
  }
  return undefined
}
