import { encodeSemaphores, type SemaphoreOperation } from '../external/semaphoreOperations.js'
import { NodeDescription } from './nodeDescription.js'

/**
 * Describes a node that signals other libraries' semaphores (`CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL`). @throws TypeError,
 * RangeError; DisposedError
 */
export function signalSemaphoresNode(operations: readonly SemaphoreOperation[]): NodeDescription {
  const { handles, memory, count, needs } = encodeSemaphores(operations, 'signalSemaphoresNode')
  const parameters = { extSemArray: handles.address, paramsArray: memory.address, numExtSems: count }
  return new NodeDescription('ext-semas-signal', {
    needs,
    write: () => ({ parameters: { extSemSignal: parameters }, memory: [handles, memory] }),
  })
}

/**
 * Describes a node that waits for other libraries' semaphores (`CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT`). @throws as
 * {@link signalSemaphoresNode}
 */
export function waitSemaphoresNode(operations: readonly SemaphoreOperation[]): NodeDescription {
  const { handles, memory, count, needs } = encodeSemaphores(operations, 'waitSemaphoresNode')
  const parameters = { extSemArray: handles.address, paramsArray: memory.address, numExtSems: count }
  return new NodeDescription('ext-semas-wait', {
    needs,
    write: () => ({ parameters: { extSemWait: parameters }, memory: [handles, memory] }),
  })
}
