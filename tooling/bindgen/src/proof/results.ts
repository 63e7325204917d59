// Results for the recorder to return, and the values that JavaScript must get.

import { isDeepStrictEqual } from 'node:util'
import type { FunctionSpec, Lowered } from '../spec/types.js'
import type { Codec } from './packages.js'
import type { Random } from './random.js'
import { floatEdges, integerRange, readScalar, scalarKind, writeScalar } from './scalars.js'
import type { Round } from './values.js'

/** Bytes for the recorder to return. They are longer than any result, so that the rest is noise. */
export function resultBytes(entry: FunctionSpec, round: Round, random: Random): Uint8Array {
  const { result } = entry
  const bytes = random.bytes(512)
  const data = new DataView(bytes.buffer)
  if (result.kind === 'bool') bytes[0] = round === 'highest' ? 1 : round === 'lowest' ? 0 : random.below(2)
  else if (result.kind === 'float') {
    if (round === 'random') return bytes
    writeScalar(data, 0, result.type, random.pick(floatEdges))
  } else if (result.kind === 'struct') {
    if (round === 'highest' || round === 'lowest') bytes.fill(round === 'highest' ? 255 : 0, 0, result.size)
  } else if (round === 'highest' || round === 'lowest' || (round === 'mixed' && random.below(2) === 0)) {
    const [low, high] = integerRange(scalarKind(result))
    writeScalar(data, 0, scalarKind(result), round === 'highest' ? high : round === 'lowest' ? low : -1n)
  }
  return bytes
}

/** The JavaScript value of these bytes. */
export function expectedResult(result: Lowered, bytes: Uint8Array, codec: Codec | undefined): unknown {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (result.kind === 'void') return undefined
  if (result.kind === 'struct') return codec?.read(bytes.subarray(0, result.size))
  return readScalar(data, 0, scalarKind(result))
}

/** Describes the difference between two results, or returns undefined. */
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
