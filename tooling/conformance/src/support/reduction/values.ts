import { type DType, decodeArray, dtypeInfo, encodeArray, type HostValueOf, type TypedArrayOf } from '@shoal/types'
import { Random } from '../random.js'

/** How the elements of all ranks are combined. */
export type Op = 'sum' | 'prod' | 'min' | 'max' | 'avg' | 'preMulSum' | 'and' | 'or' | 'xor'

/** The inputs that determine values. */
export interface Draw {
  readonly dtype: DType
  /** The reduction of the values, or undefined if they are only moved. */
  readonly op: Op | undefined
  readonly seed: number
}

/**
 * Values repeat after this many elements, to make large counts cheap. The period is prime, so an element at a wrong
 * place is noticed.
 */
const period = 997

/** The values of one rank. */
export interface Values {
  /** The bytes as the dtype stores them. */
  readonly bytes: Uint8Array
  /** The values as numbers, or `undefined` if they are only moved. */
  readonly numbers: Float64Array | BigInt64Array | BigUint64Array | undefined
}

/** Returns the values of a rank, as many as `count` elements need. Every process gets the same values. */
export function valuesOf(draw: Draw, rank: number, worldSize: number, count = period): Values {
  const random = new Random((draw.seed + Math.imul(rank + 1, 0x9e3779b1)) >>> 0)
  const { dtype, op } = draw
  const length = Math.min(period, Math.max(count, 1))
  if (op === undefined) return { bytes: random.bytes(length * dtypeInfo(dtype).bytes), numbers: undefined }
  const bits =
    dtypeInfo(dtype).kind === 'float'
      ? floats(random, dtype, op, length)
      : integers(random, dtype, op, worldSize, length)
  return { bytes: bytesOf(bits), numbers: numbersOf(dtype, bits) }
}

export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

/** Decodes the bits. */
export function numbersOf<D extends DType>(
  dtype: D,
  bits: TypedArrayOf<D>,
): Float64Array | BigInt64Array | BigUint64Array {
  if (bits instanceof BigInt64Array || bits instanceof BigUint64Array) return bits
  return Float64Array.from(decodeArray(dtype, bits) as ArrayLike<number>)
}

function floats(random: Random, dtype: DType, op: Op, length: number): TypedArrayOf<DType> {
  // Sums and products of many ranks must stay in the range of 8 bits.
  const most = dtypeInfo(dtype).bytes === 1 ? 2 : 4
  const values = Array.from({ length }, () => {
    const value = random.signed()
    return op === 'prod' ? (value < 0 ? -1 : 1) * 2 ** value : value * most
  })
  return encodeArray(dtype, values as HostValueOf<DType>[])
}

function integers(random: Random, dtype: DType, op: Op, worldSize: number, length: number): TypedArrayOf<DType> {
  const bits = random.array(dtype, length)
  // Sums and products wrap around. The sum of a mean must fit, because a mean does not wrap.
  if (op !== 'avg') return bits
  if (bits instanceof BigInt64Array || bits instanceof BigUint64Array) {
    for (let index = 0; index < length; index += 1) bits[index] = (bits[index] as bigint) / BigInt(worldSize)
    return bits
  }
  const numbers = bits as Int32Array
  for (let index = 0; index < length; index += 1) {
    numbers[index] = Math.trunc((numbers[index] as number) / worldSize)
  }
  return bits
}

const scalars: readonly number[] = [2, 0.5, 1.5, 0.75]

/** Returns a rank's factor in a pre-multiplied sum. Every dtype holds it exactly. */
export function scalarOf(dtype: DType, rank: number): number | bigint {
  const { kind, bytes } = dtypeInfo(dtype)
  if (kind === 'float') return scalars[rank % scalars.length] as number
  return bytes === 8 ? BigInt(2 + (rank % 3)) : 2 + (rank % 3)
}
