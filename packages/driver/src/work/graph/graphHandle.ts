import {
  type CUgraph,
  CUgraphEdgeData,
  type CUgraphNode,
  cuGraphChildGraphNodeGetGraph,
  cuGraphClone,
  cuGraphCreate,
  cuGraphDebugDotPrint,
  cuGraphDestroy,
  cuGraphNodeFindInClone,
  cuGraphNodeGetType,
} from '@shoal/cuda-sys/driver'
import { optionalBoolean, requireOptions, requireText } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { check, checkRelease } from '../../core/errors.js'
import { processIsEnding } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import type { NodeResources } from './nodeResources.js'
import { type GraphNodeType, nodeTypeOf } from './nodeTypes.js'

export function createHandle(context: Context): CUgraph {
  const out = scratch()
  context._callDriver('cuGraphCreate', () => cuGraphCreate(out, 0))
  return out.u64[0] as CUgraph
}

export function cloneHandle(handle: CUgraph): CUgraph {
  const out = scratch()
  check(cuGraphClone(out, handle), 'cuGraphClone')
  return out.u64[0] as CUgraph
}

/** Returns the graph of a child graph node. */
export function childHandle(node: CUgraphNode): CUgraph {
  const out = scratch()
  check(cuGraphChildGraphNodeGetGraph(node, out), 'cuGraphChildGraphNodeGetGraph')
  return out.u64[0] as CUgraph
}

export function destroyHandle(context: Context, handle: CUgraph, resources: NodeResources): void {
  try {
    if (!context.disposed && !processIsEnding()) checkRelease(cuGraphDestroy(handle), 'cuGraphDestroy')
  } finally {
    resources.release()
  }
}

/** Returns a clone's copy of the node `original`. */
export function nodeInClone(original: CUgraphNode, clone: CUgraph): CUgraphNode {
  const out = scratch()
  check(cuGraphNodeFindInClone(out, original, clone), 'cuGraphNodeFindInClone')
  return out.u64[0] as CUgraphNode
}

export function typeOfNode(node: CUgraphNode): GraphNodeType {
  const out = scratch()
  check(cuGraphNodeGetType(node, out), 'cuGraphNodeGetType')
  return nodeTypeOf(out.i32[0] as number)
}

/** Returns the nodes that a driver function lists. Calls it first for their number. */
export function listNodes(
  api: string,
  list: (nodes: BigUint64Array | null, edges: Uint8Array | null, count: ReturnType<typeof scratch>) => number,
): CUgraphNode[] {
  const out = scratch()
  check(list(null, null, out), api)
  const count = Number(out.u64[0])
  if (count === 0) return []
  const nodes = new BigUint64Array(count)
  out.u64[0] = BigInt(count)
  check(list(nodes, new Uint8Array(count * CUgraphEdgeData.size), out), api)
  return Array.from(nodes, (node) => node as CUgraphNode)
}

export function writeDotFile(
  handle: CUgraph,
  path: string,
  options: { readonly verbose?: boolean | undefined },
  api: string,
): void {
  requireText(path, api, 'path')
  requireOptions(options, api, { verbose: true })
  const flags = optionalBoolean(options.verbose, api, 'verbose', false) ? 1 : 0
  check(cuGraphDebugDotPrint(handle, path, flags), 'cuGraphDebugDotPrint')
}
