/** Graphs: what `@shoal/driver/graph` and `@shoal/runtime/graph` offer. An entry of its own, as few programs need it. */
export { type CaptureOptions, captureStatus } from './graph/capture.js'
export {
  type CaptureDependencyOptions,
  type CaptureInfo,
  captureInfo,
  setCaptureDependencies,
  withCaptureMode,
} from './graph/captureInfo.js'
export { type ChildGraphOptions, childGraphNode } from './graph/childGraph.js'
export type { ConditionalNode, ConditionalOptions } from './graph/conditional.js'
export type { GraphEdge } from './graph/edges.js'
export { Graph, type GraphAllocation, type NodeOptions } from './graph/graph.js'
export type { GraphDescription } from './graph/graphDescription.js'
export { GraphExec, type GraphUpdate, type GraphUpdateResult, type InstantiateOptions } from './graph/graphExec.js'
export { type GraphMemoryUsage, graphMemoryUsage, resetGraphMemoryHigh, trimGraphMemory } from './graph/graphMemory.js'
export { type EdgeData, GraphNode } from './graph/graphNode.js'
export { kernelNode, kernelOffsets } from './graph/kernelNode.js'
export { copyNode, fillNode } from './graph/memoryNodes.js'
export { NodeDescription } from './graph/nodeDescription.js'
export { type CopyEnd, type NodeParameters, nodeParameters } from './graph/nodeParameters.js'
export type { GraphNodeType } from './graph/nodeTypes.js'
export {
  emptyNode,
  eventRecordNode,
  eventWaitNode,
  hostNode,
  memoryOperationsNode,
} from './graph/orderNodes.js'
export { signalSemaphoresNode, waitSemaphoresNode } from './graph/semaphoreNodes.js'
export { UserObject } from './graph/userObject.js'
