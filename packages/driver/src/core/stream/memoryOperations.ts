import { NativeMemory } from '@shoal/ffi'
import {
  type MemoryLike,
  type OptionKeys,
  outOfRange,
  requireKeyOf,
  requireList,
  requireOneOf,
  requireOptions,
  toMemoryRange,
  wrongType,
} from '@shoal/types'

/**
 * Condition that ends a wait for a word. `geq`: the word is at least the value (cyclic); `eq`: the word is equal to the
 * value; `and`: word and value share a set bit; `nor`: some bit is set in neither of them.
 */
export type WordCondition = 'geq' | 'eq' | 'and' | 'nor'

/** A write to a word of memory, or a wait for one, in a stream. */
export interface MemoryOperation {
  /** The kind of operation. */
  readonly operation: 'write' | 'wait'
  /** The word: memory of 4 or 8 bytes. */
  readonly memory: MemoryLike
  /** The value to write or compare, an integer of the word's size. */
  readonly value: number | bigint
  /** Condition of a wait. Default: 'geq'. */
  readonly condition?: WordCondition | undefined
}

/** Encoded operations: an array of `CUstreamBatchMemOpParams` for C. */
export interface EncodedOperations {
  readonly memory: NativeMemory
  readonly count: number
  /** The words. Each has a check that throws after its memory was disposed of. */
  readonly needs: ReadonlyMap<object, () => void>
}

const operationKeys: OptionKeys<MemoryOperation> = { operation: true, memory: true, value: true, condition: true }
const conditions: { readonly [C in WordCondition]: number } = { geq: 0, eq: 1, and: 2, nor: 3 }
const mostOperations = 256

// Layout of CUstreamBatchMemOpParams, and CUstreamBatchMemOpType by word size
const layout = { bytes: 48, address: 8, value: 16, flags: 24 } as const
const codes = { wait: { 4: 1, 8: 4 }, write: { 4: 2, 8: 5 } } as const

/**
 * Encodes operations for C.
 * @param isOne whether `api` takes the parts of one operation as separate parameters
 * @throws TypeError, RangeError; DisposedError
 */
export function encodeOperations(
  operations: readonly MemoryOperation[],
  api: string,
  isOne = false,
): EncodedOperations {
  const list = requireList(operations, api, 'operations', 'an array of operations')
  if (list.length === 0 || list.length > mostOperations) {
    throw outOfRange(api, 'operations', `1 to ${mostOperations} operations`, list.length)
  }
  const needs = new Map<object, () => void>()
  const memory = NativeMemory.allocate(list.length * layout.bytes)
  const view = new DataView(memory.buffer)
  for (const [index, wanted] of list.entries()) {
    const name = `operations[${index}]`
    requireOptions(wanted, api, operationKeys, name)
    const prefix = isOne ? '' : `${name}.`
    const kind = requireOneOf(wanted.operation, api, `${prefix}operation`, ['write', 'wait'])
    const word = wanted.memory
    const { address, byteLength } = toMemoryRange(word, api, `${prefix}memory`)
    if (byteLength !== 4 && byteLength !== 8)
      throw outOfRange(api, `${prefix}memory`, 'memory of 4 or 8 bytes', byteLength)
    needs.set(word, () => void toMemoryRange(word, api, `${prefix}memory`))
    const condition = requireKeyOf(
      wanted.condition === undefined ? 'geq' : wanted.condition,
      api,
      `${prefix}condition`,
      conditions,
    )
    const at = index * layout.bytes
    view.setInt32(at, codes[kind][byteLength], true)
    view.setBigUint64(at + layout.address, address, true)
    view.setBigUint64(at + layout.value, wordOf(wanted.value, byteLength, api, `${prefix}value`), true)
    view.setUint32(at + layout.flags, kind === 'wait' ? condition : 0, true)
  }
  return { memory, count: list.length, needs }
}

function wordOf(value: unknown, byteLength: number, api: string, name: string): bigint {
  const bits = byteLength * 8
  const expected = `an integer from 0 to 2^${bits} - 1`
  if (typeof value !== 'bigint' && !Number.isInteger(value)) throw wrongType(api, name, expected, value)
  const word = BigInt(value as number | bigint)
  if (word < 0n || word >= 2n ** BigInt(bits)) throw outOfRange(api, name, expected, value)
  return word
}
