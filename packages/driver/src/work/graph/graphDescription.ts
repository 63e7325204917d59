import type { GraphEdge } from './edges.js'
import type { GraphNode } from './graphNode.js'

/** What a graph looks like, for `JSON.stringify`. */
export interface GraphDescription {
  /** In the order of {@link Graph.nodes}; `id` is what edges name. */
  readonly nodes: readonly { readonly id: number; readonly type: string }[]
  /** By the ids of the nodes. */
  readonly edges: readonly {
    readonly from: number
    readonly to: number
    readonly fromPort: number
    readonly type: string
  }[]
}

/** Nodes by number, and the edges between them. */
export function describeGraph(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): GraphDescription {
  const numbers = new Map(nodes.map((node, index) => [node, index]))
  return {
    nodes: nodes.map(({ type }, id) => ({ id, type })),
    edges: edges.map(({ from, to, fromPort, type }) => ({
      from: numbers.get(from) as number,
      to: numbers.get(to) as number,
      fromPort,
      type,
    })),
  }
}
