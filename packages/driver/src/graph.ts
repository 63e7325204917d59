/**
 * Graphs: the entries `@shoal/driver/graph` and `@shoal/runtime/graph`. A separate entry, because few programs need it.
 */
export { type CaptureOptions, captureStatus } from './work/graph/capture.js'
export {
  type CaptureDependencyOptions,
  type CaptureInfo,
  captureInfo,
  setCaptureDependencies,
  withCaptureMode,
} from './work/graph/captureInfo.js'
export { type ChildGraphOptions, childGraphNode } from './work/graph/childGraph.js'
export type { ConditionalNode, ConditionalOptions } from './work/graph/conditional.js'
export type { GraphEdge, NodeOptions } from './work/graph/edges.js'
export { Graph, type GraphAllocation } from './work/graph/graph.js'
export type { GraphDescription } from './work/graph/graphDescription.js'
export { GraphExec, type GraphUpdate, type GraphUpdateResult, type InstantiateOptions } from './work/graph/graphExec.js'
export {
  type GraphMemoryUsage,
  graphMemoryUsage,
  resetGraphMemoryHigh,
  trimGraphMemory,
} from './work/graph/graphMemory.js'
export { type EdgeData, GraphNode } from './work/graph/graphNode.js'
export { kernelNode, kernelOffsets } from './work/graph/kernelNode.js'
export { copyNode, fillNode } from './work/graph/memoryNodes.js'
export { NodeDescription } from './work/graph/nodeDescription.js'
export { type CopyEnd, type NodeParameters, nodeParameters } from './work/graph/nodeParameters.js'
export type { GraphNodeType } from './work/graph/nodeTypes.js'
export {
  emptyNode,
  eventRecordNode,
  eventWaitNode,
  hostNode,
  memoryOperationsNode,
} from './work/graph/orderNodes.js'
export { signalSemaphoresNode, waitSemaphoresNode } from './work/graph/semaphoreNodes.js'
export { UserObject } from './work/graph/userObject.js'
