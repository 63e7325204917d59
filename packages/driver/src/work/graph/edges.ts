import {
  type CUgraph,
  CUgraphEdgeData,
  type CUgraphNode,
  cuGraphAddDependencies,
  cuGraphGetEdges,
  cuGraphRemoveDependencies,
} from '@shoal/cuda-sys/driver'
import { requireInteger, requireOneOf } from '@shoal/types'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { type EdgeData, edgeOf, type GraphNode } from './graphNode.js'

/** One node that waits for another one. */
export interface GraphEdge extends EdgeData {
  /** The node that ends first. */
  readonly from: GraphNode
  /** The node that waits for it. */
  readonly to: GraphNode
}

/** What waits for what in a graph. */
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

/** A `CUgraphEdgeData`. @throws TypeError, RangeError */
export function encodeEdge(data: Partial<EdgeData>, api: string): Uint8Array {
  const { fromPort, type } = data
  return CUgraphEdgeData.allocate({
    from_port: fromPort === undefined ? 0 : requireInteger(fromPort, api, 'fromPort', 0, 255),
    type: type !== undefined && requireOneOf(type, api, 'type', ['default', 'programmatic']) === 'programmatic' ? 1 : 0,
  })
}

/** Adds the edge between two nodes of a graph, or takes it away. @throws StatusError */
export function changeEdge(graph: CUgraph, from: GraphNode, to: GraphNode, edge: Uint8Array, isAdded: boolean): void {
  const [one, other] = [BigUint64Array.of(from.handle), BigUint64Array.of(to.handle)]
  if (isAdded) check(cuGraphAddDependencies(graph, one, other, edge, 1), 'cuGraphAddDependencies')
  else check(cuGraphRemoveDependencies(graph, one, other, edge, 1), 'cuGraphRemoveDependencies')
}
