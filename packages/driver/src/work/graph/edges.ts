import {
  type CUgraph,
  CUgraphEdgeData,
  type CUgraphNode,
  cuGraphAddDependencies,
  cuGraphGetEdges,
  cuGraphRemoveDependencies,
} from '@shoal/cuda-sys/driver'
import {
  isArray,
  type OptionKeys,
  optionsChecker,
  requireInstance,
  requireInteger,
  requireOneOf,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { type EdgeData, edgeOf, GraphNode } from './graphNode.js'

/** Options for adding a node. */
export interface NodeOptions {
  /** Nodes of the same graph that must complete first. Default: none. */
  readonly dependencies?: readonly GraphNode[] | undefined
}

export const nodeKeys: OptionKeys<NodeOptions> = { dependencies: true }
export const requireNodeOptions = optionsChecker(nodeKeys)

export const none: readonly GraphNode[] = []

/** A dependency of one node on another. */
export interface GraphEdge extends EdgeData {
  /** The node that completes first. */
  readonly from: GraphNode
  /** The node that waits. */
  readonly to: GraphNode
}

/** Returns all dependencies of a graph. */
export function edgesOf(handle: CUgraph, nodeOf: (node: CUgraphNode) => GraphNode): GraphEdge[] {
  const out = scratch()
  check(cuGraphGetEdges(handle, null, null, null, out), 'cuGraphGetEdges')
  const count = Number(out.u64[0])
  if (count === 0) return []
  const [from, to] = [new BigUint64Array(count), new BigUint64Array(count)]
  const data = new Uint8Array(count * CUgraphEdgeData.size)
  out.u64[0] = BigInt(count)
  check(cuGraphGetEdges(handle, from, to, data, out), 'cuGraphGetEdges')
  return Array.from(from, (node, index) => ({
    from: nodeOf(node as CUgraphNode),
    to: nodeOf(to[index] as CUgraphNode),
    ...edgeOf(CUgraphEdgeData.read(data, index * CUgraphEdgeData.size)),
  }))
}

/** Encodes a `CUgraphEdgeData`. @throws TypeError, RangeError */
function encodeEdge(data: Partial<EdgeData>, api: string): Uint8Array {
  const { fromPort, type } = data
  return CUgraphEdgeData.allocate({
    from_port: fromPort === undefined ? 0 : requireInteger(fromPort, api, 'fromPort', 0, 255),
    type: type !== undefined && requireOneOf(type, api, 'type', ['default', 'programmatic']) === 'programmatic' ? 1 : 0,
  })
}

/** Adds or removes an edge between two nodes of the graph. @throws TypeError, RangeError, StatusError */
export function changeEdge(
  graph: GraphNode['graph'],
  from: GraphNode,
  to: GraphNode,
  data: Partial<EdgeData>,
  isAdded: boolean,
): void {
  const api = isAdded ? 'Graph.addDependency' : 'Graph.removeDependency'
  requireOptions(data, api, { fromPort: true, type: true }, 'data')
  const { handle } = graph
  const [first] = requireNodes(graph, [from], api, 'from') as [GraphNode]
  const [second] = requireNodes(graph, [to], api, 'to') as [GraphNode]
  const edge = encodeEdge(data, api)
  const [one, other] = [BigUint64Array.of(first.handle), BigUint64Array.of(second.handle)]
  if (isAdded) check(cuGraphAddDependencies(handle, one, other, edge, 1), 'cuGraphAddDependencies')
  else check(cuGraphRemoveDependencies(handle, one, other, edge, 1), 'cuGraphRemoveDependencies')
}

/** Checks that nodes belong to the graph. @throws TypeError, DisposedError */
export function requireNodes(
  graph: GraphNode['graph'],
  nodes: readonly GraphNode[] | undefined,
  api: string,
  name = 'dependencies',
): readonly GraphNode[] {
  if (nodes === undefined) return none
  if (!isArray(nodes)) throw wrongType(api, name, 'an array of nodes', nodes)
  // Most nodes have one dependency. A growing list would reserve room for many.
  if (nodes.length === 1) return [requireNode(graph, nodes[0], api, name, 0)]
  const checked: GraphNode[] = []
  for (let index = 0; index < nodes.length; index += 1) {
    checked.push(requireNode(graph, nodes[index], api, name, index))
  }
  return checked
}

function requireNode(graph: GraphNode['graph'], node: unknown, api: string, name: string, index: number): GraphNode {
  return GraphNode._isOf(graph, node) ? node : refuseNode(node, api, name, index)
}

function refuseNode(node: unknown, api: string, name: string, index: number): never {
  const at = name === 'dependencies' ? `${name}[${index}]` : name
  const other = requireInstance(node, api, at, GraphNode)
  // Throws if the node was removed.
  void other.handle
  throw wrongType(api, at, 'a node of this graph', node)
}
