import type { GraphEdge } from './edges.js'
import type { GraphNode } from './graphNode.js'

/** A graph's structure, for `JSON.stringify`. */
export interface GraphDescription {
  /** The nodes in the order of {@link Graph.nodes}. Edges refer to `id`. */
  readonly nodes: readonly { readonly id: number; readonly type: string }[]
  /** The edges, by node ids. */
  readonly edges: readonly {
    readonly from: number
    readonly to: number
    readonly fromPort: number
    readonly type: string
  }[]
}

/** Describes the nodes by number, and the edges between them. */
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
