import { Resource } from '@shoal/cuda-base'
import { isInstance, loadedFrom, otherCopy, propertyOf, wrongType } from '@shoal/types'
import type { Graph } from './graph.js'
import { NodeResources } from './nodeResources.js'

/** A graph of this package, for what the class is made of and cannot name it. @throws TypeError */
export function requireGraph(value: unknown, api: string): asserts value is Graph {
  const isGraph = isInstance(value, Resource as never) && propertyOf(value, '_resources') instanceof NodeResources
  if (!isGraph)
    throw (
      otherCopy(value, api, 'graph', { name: 'Graph', [loadedFrom]: Resource[loadedFrom] }) ??
      wrongType(api, 'graph', 'a Graph', value)
    )
}

/** @throws TypeError for a child graph, or a body of a conditional node */
export function requireWhole(graph: Graph, api: string): void {
  if (graph._isPart) throw wrongType(api, 'graph', 'a graph that is no part of another one', graph)
}
