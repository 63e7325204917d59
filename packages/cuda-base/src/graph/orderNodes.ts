import { type EventLike, requireEventLike } from '@shoal/cuda-base'
import { type CUevent, CUstreamBatchMemOpParams, CUstreamBatchMemOpType } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import {
  type MemoryLike,
  type OptionKeys,
  outOfRange,
  requireFunction,
  requireKeyOf,
  requireList,
  requireOneOf,
  requireOptions,
  toMemoryRange,
  wrongType,
} from '@shoal/types'
import { NodeDescription } from './nodeDescription.js'
import { sharedCallback } from './nodeResources.js'

/** A node that does nothing: many nodes behind many others need fewer edges with one between (`CU_GRAPH_NODE_TYPE_EMPTY`). */
export function emptyNode(): NodeDescription {
  return new NodeDescription({ type: 'empty', write: () => ({ parameters: {} }) })
}

/**
 * A node that calls `fn` on this JavaScript thread each time it is reached; nodes behind it do not wait for the call
 * (`CU_GRAPH_NODE_TYPE_HOST`). What `fn` throws is an uncaught exception. The call does not keep the process alive.
 * @throws TypeError
 */
export function hostNode(fn: () => void): NodeDescription {
  requireFunction(fn, 'hostNode', 'fn')
  const callback = sharedCallback(fn)
  const { functionAddress, userData } = callback.callback
  return new NodeDescription({
    type: 'host',
    callback,
    write: () => ({ parameters: { host: { fn: functionAddress, userData } } }),
  })
}

/** A node that records an event (`CU_GRAPH_NODE_TYPE_EVENT_RECORD`). @throws TypeError; DisposedError */
export function eventRecordNode(event: EventLike): NodeDescription {
  return eventNode(event, 'event-record', 'eventRecordNode')
}

/** A node behind which nothing runs before an event is reached (`CU_GRAPH_NODE_TYPE_WAIT_EVENT`). @throws TypeError; DisposedError */
export function eventWaitNode(event: EventLike): NodeDescription {
  return eventNode(event, 'wait-event', 'eventWaitNode')
}

function eventNode(event: EventLike, type: 'event-record' | 'wait-event', api: string): NodeDescription {
  const handle: CUevent = requireEventLike(event, api).handle
  return new NodeDescription({
    type,
    needs: new Map([[event as object, () => void event.handle]]),
    write: () => ({
      parameters: type === 'wait-event' ? { eventWait: { event: handle } } : { eventRecord: { event: handle } },
    }),
  })
}

/** A word of memory that a stream writes, or waits for. */
export interface MemoryOperation {
  readonly operation: 'write' | 'wait'
  /** Memory of 4 or 8 bytes, the word. */
  readonly memory: MemoryLike
  readonly value: number | bigint
  /** What ends a wait: the word is at least `value` (cyclically), equal to it, has a bit of it, or lacks one of both. Default: 'geq'. */
  readonly condition?: 'geq' | 'eq' | 'and' | 'nor' | undefined
}

const operationKeys: OptionKeys<MemoryOperation> = { operation: true, memory: true, value: true, condition: true }
const conditions = { geq: 0, eq: 1, and: 2, nor: 3 } as const
const mostOperations = 256

/**
 * A node that writes words and waits for words, one after the other (`CU_GRAPH_NODE_TYPE_BATCH_MEM_OP`); at most 256.
 * @throws TypeError, RangeError; DisposedError
 */
export function memoryOperationsNode(operations: readonly MemoryOperation[]): NodeDescription {
  const api = 'memoryOperationsNode'
  const list = requireList(operations, api, 'operations', 'an array of operations')
  if (list.length === 0 || list.length > mostOperations) {
    throw outOfRange(api, 'operations', `1 to ${mostOperations} operations`, list.length)
  }
  const needs = new Map<object, () => void>()
  const { size } = CUstreamBatchMemOpParams
  const memory = NativeMemory.allocate(list.length * size)
  for (const [index, wanted] of list.entries()) {
    const name = `operations[${index}]`
    requireOptions(wanted, api, operationKeys, name)
    const isWait = requireOneOf(wanted.operation, api, `${name}.operation`, ['write', 'wait']) === 'wait'
    const { address, byteLength } = toMemoryRange(wanted.memory, api, `${name}.memory`)
    if (byteLength !== 4 && byteLength !== 8)
      throw outOfRange(api, `${name}.memory`, 'memory of 4 or 8 bytes', byteLength)
    needs.set(wanted.memory, () => void toMemoryRange(wanted.memory, api, `${name}.memory`))
    const word = {
      operation: operationCode(isWait, byteLength),
      address,
      value64: wordOf(wanted.value, byteLength, api, `${name}.value`),
      flags: isWait ? requireKeyOf(wanted.condition ?? 'geq', api, `${name}.condition`, conditions) : 0,
    }
    CUstreamBatchMemOpParams.write(memory, isWait ? { waitValue: word } : { writeValue: word }, index * size)
  }
  return new NodeDescription({
    type: 'batch-mem-op',
    needs,
    write: (context) => ({
      parameters: { memOp: { ctx: context.handle, count: list.length, paramArray: memory.address } },
      memory,
    }),
  })
}

function operationCode(isWait: boolean, byteLength: number): CUstreamBatchMemOpType {
  const codes = CUstreamBatchMemOpType
  if (byteLength === 4) return isWait ? codes.CU_STREAM_MEM_OP_WAIT_VALUE_32 : codes.CU_STREAM_MEM_OP_WRITE_VALUE_32
  return isWait ? codes.CU_STREAM_MEM_OP_WAIT_VALUE_64 : codes.CU_STREAM_MEM_OP_WRITE_VALUE_64
}

function wordOf(value: unknown, byteLength: number, api: string, name: string): bigint {
  const bits = byteLength * 8
  const expected = `an integer from 0 to 2^${bits} - 1`
  if (typeof value !== 'bigint' && !Number.isInteger(value)) throw wrongType(api, name, expected, value)
  const word = BigInt(value as number | bigint)
  if (word < 0n || word >= 2n ** BigInt(bits)) throw outOfRange(api, name, expected, value)
  return word
}
