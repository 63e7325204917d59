import {
  type CUgraphEdgeData,
  type CUgraphNode,
  type CUlaunchAttributeID,
  cuGraphDestroyNode,
  cuGraphKernelNodeSetAttribute,
  cuGraphNodeGetDependencies,
  cuGraphNodeGetDependentNodes,
  cuGraphNodeSetParams,
} from '@shoal/cuda-sys/driver'
import { DisposedError, inspectKey, inspectLine, loadedFrom, requireMade, StatusError } from '@shoal/types'
import { check } from '../../core/errors.js'
import { u64Of } from '../../core/u64Halves.js'
import type { Graph } from './graph.js'
import { listNodes } from './graphHandle.js'
import { type KernelAttributes, type NodeDescription, requireDescription } from './nodeDescription.js'
import type { GraphNodeType } from './nodeTypes.js'

/** How a node waits for another one: for all of it, or for a part of a kernel. */
export interface EdgeData {
  /** 0: the whole node; of a kernel, 1: when it triggers completion by itself, 2: when all its blocks have begun. */
  readonly fromPort: number
  /** `programmatic`: the kernel behind may begin before, and waits by itself. */
  readonly type: 'default' | 'programmatic'
}

/** @internal The edge as C has it. */
export function edgeOf({ from_port, type }: CUgraphEdgeData): EdgeData {
  return { fromPort: from_port, type: type === 1 ? 'programmatic' : 'default' }
}

/**
 * A node of a graph: a piece of work that runs when those it depends on have ended. It lives as long as its graph.
 */
export class GraphNode {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** The graph it is in. */
  readonly graph: Graph
  /** What it does. */
  readonly type: GraphNodeType
  /** @internal The halves of its handle: a graph has many nodes, and few are asked for a bigint. */
  readonly _low: number
  /** @internal */
  readonly _high: number
  #isRemoved = false
  /** A list of nodes that needs no memory of its own. */
  #previous: GraphNode | undefined

  /** @internal @param previous what {@link _takePrevious} gives once. */
  constructor(graph: Graph, low: number, high: number, type: GraphNodeType, previous: GraphNode | undefined) {
    requireMade(type, 'GraphNode', 'Graph.add', 'string')
    this.#previous = previous
    this.graph = graph
    this._low = low
    this._high = high
    this.type = type
  }

  /** @internal A node of this graph that is still there. Short, as it is asked of each that is named. */
  static _isOf(graph: Graph, value: unknown): value is GraphNode {
    return (
      typeof value === 'object' && value !== null && #isRemoved in value && value.graph === graph && !value.#isRemoved
    )
  }

  /** @internal @throws DisposedError when it was removed */
  _requireThere(): void {
    if (this.#isRemoved) throw new DisposedError('GraphNode (it was removed)')
  }

  /** @internal */
  _takePrevious(): GraphNode | undefined {
    const previous = this.#previous
    this.#previous = undefined
    return previous
  }

  /** @internal The handle without the check that it is still there. */
  get _handle(): CUgraphNode {
    return u64Of({ low: this._low, high: this._high }) as CUgraphNode
  }

  /** The `CUgraphNode`. @throws DisposedError once its graph was disposed of, or it was removed. */
  get handle(): CUgraphNode {
    this._requireThere()
    this.graph._requireUsable()
    return this._handle
  }

  /** The nodes it runs behind (`cuGraphNodeGetDependencies`). */
  get dependencies(): readonly GraphNode[] {
    return listNodes('cuGraphNodeGetDependencies', (nodes, edges, count) =>
      cuGraphNodeGetDependencies(this.handle, nodes, edges, count),
    ).map((node) => this.graph._node(node))
  }

  /** The nodes that run behind it (`cuGraphNodeGetDependentNodes`). */
  get dependents(): readonly GraphNode[] {
    return listNodes('cuGraphNodeGetDependentNodes', (nodes, edges, count) =>
      cuGraphNodeGetDependentNodes(this.handle, nodes, edges, count),
    ).map((node) => this.graph._node(node))
  }

  /**
   * Gives the node other parameters, of its own kind (`cuGraphNodeSetParams`). Executable graphs that were made already
   * stay as they are: `GraphExec.update` brings them there.
   * @throws TypeError for a description of another kind; DisposedError, StatusError
   */
  update(description: NodeDescription): this {
    const api = 'GraphNode.update'
    const checked = requireDescription(description, api, 'description')
    this._requireKind(checked, api)
    this.graph._requireNotCaptured(this, api)
    const { parameters, memory } = checked._write(this.graph.context, api)
    this.graph.context._callDriver('cuGraphNodeSetParams', () => cuGraphNodeSetParams(this.handle, parameters))
    if (checked._attributes !== undefined) this._setAttributes(checked._attributes)
    this.graph._resources.addNeedsOf(checked)
    if (checked.type === 'graph') this.graph._endParts(this)
    void memory
    return this
  }

  /**
   * Takes the node and its edges out of the graph, and ends the graphs that it has (`cuGraphDestroyNode`).
   * @throws StatusError in a graph with nodes of memory, which only grows; TypeError while a capture adds to a graph of
   * the node
   */
  remove(): void {
    const { handle } = this
    this.graph._requireNotCaptured(this, 'GraphNode.remove')
    check(cuGraphDestroyNode(handle), 'cuGraphDestroyNode')
    this.#isRemoved = true
    this.graph._forget(this)
  }

  /** @internal What a kernel's launches have beside their parameters (`cuGraphKernelNodeSetAttribute`). */
  _setAttributes(attributes: KernelAttributes): void {
    for (const { id, value } of attributes.entries()) {
      const attribute = id as CUlaunchAttributeID
      check(cuGraphKernelNodeSetAttribute(this.handle, attribute, value), 'cuGraphKernelNodeSetAttribute')
    }
  }

  /** @internal @throws TypeError */
  _requireKind({ type }: NodeDescription, api: string): void {
    if (type === this.type) return
    throw new TypeError(`${api}: description must be of a ${this.type} node, as this one is, not of a ${type} node`)
  }

  get [Symbol.toStringTag](): string {
    return 'GraphNode'
  }

  [inspectKey](): string {
    return inspectLine('GraphNode', { type: this.type, handle: this._handle })
  }

  /** The line that `console.log` prints, for `JSON.stringify`. */
  toJSON(): string {
    return this[inspectKey]()
  }
}

/** A node whose attributes are refused is none, but in a graph with nodes of memory, where nothing can be removed. */
export function setAttributesOrRemove(node: GraphNode, attributes: KernelAttributes): void {
  try {
    node._setAttributes(attributes)
  } catch (error) {
    try {
      node.remove()
    } catch (removal) {
      if (!(removal instanceof StatusError)) throw removal
    }
    throw error
  }
}
