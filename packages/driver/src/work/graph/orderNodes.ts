import type { CUevent } from '@shoal/cuda-sys/driver'
import { requireSynchronousFunction } from '@shoal/types'
import { sharedCallback } from '../../core/context/capturing.js'
import { type EventLike, requireEventLike } from '../../core/context/eventLike.js'
import { encodeOperations, type MemoryOperation } from '../../core/stream/memoryOperations.js'
import { NodeDescription } from './nodeDescription.js'

/**
 * Describes a node that does nothing (`CU_GRAPH_NODE_TYPE_EMPTY`). Between two groups of dependent nodes it reduces the
 * number of edges.
 */
export function emptyNode(): NodeDescription {
  return new NodeDescription('empty', {})
}

/**
 * Describes a node that calls `fn` on this JavaScript thread (`CU_GRAPH_NODE_TYPE_HOST`). Later nodes do not wait for
 * the call. An error of `fn` is an uncaught exception. The call does not keep the process alive. `fn` sees the
 * `AsyncLocalStorage` of the caller of `hostNode`.
 * @throws TypeError for an async function; if another function returns a promise, that is an uncaught TypeError
 */
export function hostNode(fn: () => void): NodeDescription {
  requireSynchronousFunction(fn, 'hostNode', 'fn')
  const callback = sharedCallback(fn, 'hostNode')
  const { functionAddress, userData } = callback.callback
  return new NodeDescription('host', {
    callback,
    write: () => ({ parameters: { host: { fn: functionAddress, userData } } }),
  })
}

/** Describes a node that records an event (`CU_GRAPH_NODE_TYPE_EVENT_RECORD`). @throws TypeError; DisposedError */
export function eventRecordNode(event: EventLike): NodeDescription {
  return eventNode(event, 'event-record', 'eventRecordNode')
}

/** Describes a node that waits for an event (`CU_GRAPH_NODE_TYPE_WAIT_EVENT`). @throws TypeError; DisposedError */
export function eventWaitNode(event: EventLike): NodeDescription {
  return eventNode(event, 'wait-event', 'eventWaitNode')
}

/** Offset of the event in a `CUgraphNodeParams`. */
const eventOffset = 16

function eventNode(event: EventLike, type: 'event-record' | 'wait-event', api: string): NodeDescription {
  const handle: CUevent = requireEventLike(event, api).handle
  return new NodeDescription(type, {
    needs: new Map([[event as object, () => void event.handle]]),
    writeWords: ({ u64 }) => {
      u64[eventOffset / 8] = handle
    },
  })
}

/**
 * Describes a node that writes words and waits for words, in order (`CU_GRAPH_NODE_TYPE_BATCH_MEM_OP`). A node has at
 * most 256 operations.
 * @throws TypeError, RangeError; DisposedError
 */
export function memoryOperationsNode(operations: readonly MemoryOperation[]): NodeDescription {
  const { memory, count, needs } = encodeOperations(operations, 'memoryOperationsNode')
  return new NodeDescription('batch-mem-op', {
    needs,
    write: (context) => ({
      parameters: { memOp: { ctx: context.handle, count, paramArray: memory.address } },
      memory,
    }),
  })
}
