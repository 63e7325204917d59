import { type OptionKeys, VersionTooOldError } from '@shoal/types'
import { driverVersion } from '../../core/start.js'
import type { NodeOptions } from './edges.js'
import type { Graph } from './graph.js'
import { NodeDescription } from './nodeDescription.js'
import { requireGraph } from './requireGraph.js'

/** Options for adding a graph as a node. */
export interface ChildGraphOptions extends NodeOptions {
  /**
   * Moves the graph itself into the node instead of copying it (`CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`). This allows
   * graphs with memory nodes. Requires CUDA 12.9. Default: false.
   *
   * The moved graph belongs to the outer graph: disposing of it does nothing, and it ends with its node or the outer
   * graph. Nodes can still be added, except nodes that allocate or free. It can be instantiated only as a part of the
   * outer graph. Existing executable graphs do not change.
   */
  readonly move?: boolean | undefined
}

export const childGraphKeys: OptionKeys<ChildGraphOptions> = { dependencies: true, move: true }

const movesSince = 12090

/** Checks that the driver can move a graph. @throws VersionTooOldError for a driver that would copy it */
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
 * Describes a node that runs a copy of a whole graph (`CU_GRAPH_NODE_TYPE_GRAPH`). The copy is made when the node is
 * added or updated. `Graph.addGraph` can also move the graph.
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
