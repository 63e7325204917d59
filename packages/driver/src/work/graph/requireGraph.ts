import { loadedFrom, otherCopy, wrongType } from '@shoal/types'
import { Resource } from '../../core/lifetime.js'
import type { Graph } from './graph.js'

let hasBrand: (value: object) => boolean = () => false

/** Sets the test for graphs, for modules that cannot import the class because it imports them. */
export function setGraphBrand(test: (value: object) => boolean): void {
  hasBrand = test
}

/** Checks that a value is a graph of this package. @throws TypeError */
export function requireGraph(value: unknown, api: string): asserts value is Graph {
  if (typeof value === 'object' && value !== null && hasBrand(value)) return
  throw (
    otherCopy(value, api, 'graph', { name: 'Graph', [loadedFrom]: Resource[loadedFrom] }) ??
    wrongType(api, 'graph', 'a Graph', value)
  )
}

/**
 * Checks that a graph is not a part of another one. @throws TypeError for a child graph or a body of a conditional
 * node; DisposedError
 */
export function requireWhole(graph: Graph, api: string): void {
  graph._requireUsable()
  if (graph._isPart) throw wrongType(api, 'graph', 'a graph that is no part of another one', graph)
}
