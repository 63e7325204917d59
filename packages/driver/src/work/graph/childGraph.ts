import { type OptionKeys, VersionTooOldError } from '@shoal/types'
import { driverVersion } from '../../core/start.js'
import type { NodeOptions } from './edges.js'
import type { Graph } from './graph.js'
import { NodeDescription } from './nodeDescription.js'
import { requireGraph } from './requireGraph.js'

/** How a graph becomes a node of another one. */
export interface ChildGraphOptions extends NodeOptions {
  /**
   * Whether the graph itself becomes the node, not a copy: so a graph with nodes of memory can be part of another one.
   * It belongs to that from then on (`CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`): nodes can still be added to it, but none
   * that allocate or free, it is instantiated as a part only, it ends with the node or the graph around it, and
   * disposing of it does nothing. Executable graphs made of it before stay as they are. Needs CUDA 12.9. Default:
   * false.
   */
  readonly move?: boolean | undefined
}

export const childGraphKeys: OptionKeys<ChildGraphOptions> = { dependencies: true, move: true }

const movesSince = 12090

/** @throws VersionTooOldError where the driver would copy what is to be moved */
export function requireMoves(api: string): void {
  const installed = driverVersion()
  if (installed.value >= movesSince) return
  throw new VersionTooOldError({
    library: 'NVIDIA CUDA driver',
    api,
    since: '12.9',
    installed: installed.toString(),
  })
}

/**
 * A node that runs a copy of a whole graph as it is when the node is added or updated (`CU_GRAPH_NODE_TYPE_GRAPH`).
 * `Graph.addGraph` can also move it there.
 * @throws TypeError, DisposedError
 *
 * @example
 * const step = graph.add(childGraphNode(inner))
 * exec.updateNode(step, childGraphNode(other)) // of the same shape
 */
export function childGraphNode(graph: Graph): NodeDescription {
  requireGraph(graph, 'childGraphNode')
  void graph.handle
  return new NodeDescription('graph', {
    child: graph,
    write: () => ({ parameters: { graph: { graph: graph.handle, ownership: 0 } } }),
  })
}
