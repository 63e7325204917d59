// Values to call functions with, and the bytes that must arrive for each.

import type { FunctionSpec, Lowered, ParameterSpec } from '../spec/types.js'
import { recordedBytes } from './abi.js'
import type { MemoryPool } from './memory.js'
import type { Random } from './random.js'
import { floatEdges, integerRange, readScalar, scalarKind, writeScalar } from './scalars.js'

/**
 * - `memory`: pointers are memory, text is text, the rest is random.
 * - `native`: like `memory`, but only native memory, for calls on other threads.
 * - `random`: everything is random, and pointers are addresses.
 * - `highest` and `lowest`: the limits of each kind.
 * - `mixed`: limits, powers of two and random values in any combination.
 */
export type Round = 'memory' | 'native' | 'random' | 'highest' | 'lowest' | 'mixed'

export interface Value {
  /** The value that JavaScript passes. */
  readonly js: unknown
  /** Returns the expected bytes. Called after the call, because memory may get its address during the call. */
  readonly bytes: () => Uint8Array
  /** The bytes of the text that the argument points to. */
  readonly text?: Uint8Array
}

type Write = (data: DataView) => void

function encode(js: unknown, count: number, write: Write, text?: Uint8Array): Value {
  const bytes = (): Uint8Array => {
    const data = new DataView(new ArrayBuffer(count))
    write(data)
    return new Uint8Array(data.buffer)
  }
  return text === undefined ? { js, bytes } : { js, bytes, text }
}

const word = (js: unknown, value: bigint): Value =>
  encode(js, 8, (data) => data.setBigUint64(0, BigInt.asUintN(64, value), true))
const half = (js: unknown, value: number): Value => encode(js, 4, (data) => data.setInt32(0, value | 0, true))

const edges64 = [
  0n,
  1n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 2n,
  2n ** 64n - 1n,
]
const signedEdges64 = edges64
  .map((value) => BigInt.asIntN(64, value))
  .concat([-(2n ** 31n), -(2n ** 32n), -(2n ** 53n) + 1n, -(2n ** 53n)])
const texts = ['', 'a', 'sm_90', 'Привет', '漢字', '😀😀', 'é', 'x'.repeat(300), '\u0001\u007f\u0080\u07ff\u0800\uffff']

function integer(lowered: Lowered, round: Round, random: Random): Value {
  const [low, high] = integerRange(scalarKind(lowered))
  const wide = high > 2n ** 32n
  const value =
    round === 'highest'
      ? high
      : round === 'lowest'
        ? low
        : round === 'mixed' && random.below(3) > 0
          ? edge(low, high, random)
          : inRange(low, high, random.u64())
  if (!wide) return half(Number(value), Number(value))
  // A safe integer may be passed as a number or a bigint.
  const isSafe = value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER)
  return word(isSafe && random.below(2) === 0 ? Number(value) : value, value)
}

function inRange(low: bigint, high: bigint, value: bigint): bigint {
  return low + (value % (high - low + 1n))
}

function edge(low: bigint, high: bigint, random: Random): bigint {
  if (high === 2n ** 64n - 1n) return random.pick(edges64)
  if (high === 2n ** 63n - 1n) return random.pick(signedEdges64)
  return random.pick([low, low + 1n, low < 0n ? -1n : 1n, 0n, 1n, high / 2n, high / 2n + 1n, high - 1n, high])
}

function address(round: Round, random: Random): Value {
  if (round === 'highest') return word(2n ** 64n - 1n, 2n ** 64n - 1n)
  if (round === 'lowest') return word(null, 0n)
  const value = round === 'mixed' && random.below(3) > 0 ? random.pick(edges64) : random.u64()
  return word(value === 0n && random.below(2) === 0 ? null : value, value)
}

function float(type: 'f32' | 'f64', round: Round, random: Random): Value {
  const anything = readScalar(new DataView(random.bytes(8).buffer), 0, type)
  const largest = type === 'f32' ? 3.4028234663852886e38 : Number.MAX_VALUE
  const value =
    round === 'highest' ? largest : round === 'lowest' ? -0 : round === 'mixed' ? random.pick(floatEdges) : anything
  return encode(value, type === 'f32' ? 4 : 8, (target) => writeScalar(target, 0, type, value))
}

function text(random: Random): Value {
  const value = `${random.pick(texts)}${random.below(4) === 0 ? '' : random.u32().toString(36)}`
  // The address is that of a copy, so only the text can be compared.
  return { js: value, bytes: () => new Uint8Array(0), text: Buffer.from(value, 'utf8') }
}

/** A value for one parameter. */
export function argumentFor(parameter: ParameterSpec, round: Round, random: Random, memory: MemoryPool): Value {
  const { lowered } = parameter
  const usesMemory = round === 'memory' || round === 'native'
  switch (lowered.kind) {
    case 'pointer': {
      if (!usesMemory) return address(round, random)
      const { js, address: locate } = round === 'native' ? memory.native() : memory.any(parameter)
      return encode(js, 8, (data) => data.setBigUint64(0, locate(), true))
    }
    case 'cstring':
      return usesMemory ? text(random) : address(round, random)
    case 'handle':
    case 'deviceptr':
    case 'callback':
      return address(usesMemory ? 'random' : round, random)
    case 'enum':
    case 'integer':
    case 'size':
      return integer(lowered, round, random)
    case 'bool': {
      const value = round === 'highest' || (round !== 'lowest' && random.below(2) === 1)
      return half(value, Number(value))
    }
    case 'float':
      return float(lowered.type, round, random)
    case 'struct': {
      const bytes =
        round === 'highest'
          ? new Uint8Array(lowered.size).fill(255)
          : round === 'lowest'
            ? new Uint8Array(lowered.size)
            : random.bytes(lowered.size)
      return { js: round === 'native' ? memory.nativeCopy(bytes) : memory.copy(bytes), bytes: () => bytes }
    }
    case 'void':
      throw new Error(`${parameter.name} is of type void`)
  }
}

/** Values for all parameters of a function. In random rounds, no two wide values are equal. */
export function argumentsFor(entry: FunctionSpec, round: Round, random: Random, memory: MemoryPool): Value[] {
  const seen = new Set<unknown>()
  return entry.parameters.map((parameter) => {
    let value = argumentFor(parameter, round, random, memory)
    if (round === 'highest' || round === 'lowest' || recordedBytes(parameter.lowered) < 4) return value
    for (let attempt = 0; attempt < 20 && typeof value.js !== 'object' && seen.has(String(value.js)); attempt++)
      value = argumentFor(parameter, round, random, memory)
    seen.add(String(value.js))
    return value
  })
}
