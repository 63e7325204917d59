// Results to return, and what each must come back as.

import { isDeepStrictEqual } from 'node:util'
import type { FunctionSpec, Lowered } from '../spec/types.js'
import type { Codec } from './packages.js'
import type { Random } from './random.js'
import type { Round } from './values.js'
import { rangeOf } from './values.js'

const floatResults = [
  0,
  -0,
  1.5,
  -1,
  Number.NaN,
  Infinity,
  -Infinity,
  5e-324,
  2 ** -149,
  3.4028234663852886e38,
  -Number.MAX_VALUE,
]

/** Bytes for the recorder to return: more than any result takes, so that what lies beyond is noise. */
export function resultBytes(entry: FunctionSpec, round: Round, random: Random): Uint8Array {
  const { result } = entry
  const bytes = random.bytes(512)
  const data = new DataView(bytes.buffer)
  if (result.kind === 'bool') bytes[0] = round === 'highest' ? 1 : round === 'lowest' ? 0 : random.below(2)
  else if (result.kind === 'float') {
    if (round === 'random') return bytes
    const value = random.pick(floatResults)
    if (result.type === 'f32') data.setFloat32(0, value, true)
    else data.setFloat64(0, value, true)
  } else if (result.kind === 'struct') {
    if (round === 'highest' || round === 'lowest') bytes.fill(round === 'highest' ? 255 : 0, 0, result.size)
  } else if (round === 'highest' || round === 'lowest' || (round === 'mixed' && random.below(2) === 0)) {
    const [low, high] = rangeOf(result)
    const value = round === 'highest' ? high : round === 'lowest' ? low : -1n
    const width = result.kind === 'integer' ? Number(result.type.slice(1)) / 8 : result.kind === 'enum' ? 4 : 8
    for (let index = 0; index < width; index++) bytes[index] = Number((value >> BigInt(8 * index)) & 0xffn)
  }
  return bytes
}

/** The value those bytes are to JavaScript. */
export function expectedResult(result: Lowered, bytes: Uint8Array, codec: Codec | undefined): unknown {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  switch (result.kind) {
    case 'void':
      return undefined
    case 'bool':
      return bytes[0] === 1
    case 'enum':
      return result.signed ? data.getInt32(0, true) : data.getUint32(0, true)
    case 'integer':
      return integerResult(data, result.type)
    case 'float':
      return result.type === 'f32' ? data.getFloat32(0, true) : data.getFloat64(0, true)
    case 'struct':
      return codec?.read(bytes.subarray(0, result.size))
    default:
      return data.getBigUint64(0, true)
  }
}

function integerResult(data: DataView, type: string): unknown {
  switch (type) {
    case 'i8':
      return data.getInt8(0)
    case 'u8':
      return data.getUint8(0)
    case 'i16':
      return data.getInt16(0, true)
    case 'u16':
      return data.getUint16(0, true)
    case 'i32':
      return data.getInt32(0, true)
    case 'u32':
      return data.getUint32(0, true)
    case 'i64':
      return data.getBigInt64(0, true)
    default:
      return data.getBigUint64(0, true)
  }
}

/** What is wrong with a result, or undefined. */
export function compareResult(expected: unknown, got: unknown): string | undefined {
  if (isDeepStrictEqual(expected, got)) return undefined
  return `${show(expected)} was returned, ${show(got)} came back`
}

export function show(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`
  if (Object.is(value, -0)) return '-0'
  if (typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`
  if (typeof value !== 'object' || value === null) return String(value)
  if (typeof value.valueOf() !== 'object') return `an object around ${String(value)}`
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}n` : each)).slice(0, 200)
}
