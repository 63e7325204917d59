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

/** The part of another node for which a node waits: the whole node, or a part of a kernel. */
export interface EdgeData {
  /** 0: the whole node. For a kernel, 1: its own completion trigger, 2: the start of all its blocks. */
  readonly fromPort: number
  /** With `programmatic`, the following kernel may start earlier, and itself waits for the results. */
  readonly type: 'default' | 'programmatic'
}

/** @internal Decodes an edge. */
export function edgeOf({ from_port, type }: CUgraphEdgeData): EdgeData {
  return { fromPort: from_port, type: type === 1 ? 'programmatic' : 'default' }
}

/** A node of a graph: a piece of work that runs after its dependencies complete. A node exists as long as its graph. */
export class GraphNode {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** The graph of the node. */
  readonly graph: Graph
  /** Kind of the node's work. */
  readonly type: GraphNodeType
  /** @internal Halves of the handle. Graphs have many nodes, and few need a bigint. */
  readonly _low: number
  /** @internal */
  readonly _high: number
  #isRemoved = false
  /** The previously added node: a linked list that needs no extra memory. */
  #previous: GraphNode | undefined

  /** @internal @param previous the node that {@link _takePrevious} returns once */
  constructor(graph: Graph, low: number, high: number, type: GraphNodeType, previous: GraphNode | undefined) {
    requireMade(type, 'GraphNode', 'Graph.add', 'string')
    this.#previous = previous
    this.graph = graph
    this._low = low
    this._high = high
    this.type = type
  }

  /** @internal Whether a value is an existing node of the graph. Short, because it runs for each given node. */
  static _isOf(graph: Graph, value: unknown): value is GraphNode {
    return (
      typeof value === 'object' && value !== null && #isRemoved in value && value.graph === graph && !value.#isRemoved
    )
  }

  /** @internal @throws DisposedError when the node was removed */
  _requireThere(): void {
    if (this.#isRemoved) throw new DisposedError('GraphNode (it was removed)')
  }

  /** @internal */
  _takePrevious(): GraphNode | undefined {
    const previous = this.#previous
    this.#previous = undefined
    return previous
  }

  /** @internal The handle, without a check that the node still exists. */
  get _handle(): CUgraphNode {
    return u64Of({ low: this._low, high: this._high }) as CUgraphNode
  }

  /** The `CUgraphNode`. @throws DisposedError after the graph was disposed of or the node was removed */
  get handle(): CUgraphNode {
    this._requireThere()
    this.graph._requireUsable()
    return this._handle
  }

  /** The nodes that this node waits for (`cuGraphNodeGetDependencies`). */
  get dependencies(): readonly GraphNode[] {
    return listNodes('cuGraphNodeGetDependencies', (nodes, edges, count) =>
      cuGraphNodeGetDependencies(this.handle, nodes, edges, count),
    ).map((node) => this.graph._node(node))
  }

  /** The nodes that wait for this node (`cuGraphNodeGetDependentNodes`). */
  get dependents(): readonly GraphNode[] {
    return listNodes('cuGraphNodeGetDependentNodes', (nodes, edges, count) =>
      cuGraphNodeGetDependentNodes(this.handle, nodes, edges, count),
    ).map((node) => this.graph._node(node))
  }

  /**
   * Replaces the node's parameters by others of the same kind (`cuGraphNodeSetParams`). Existing executable graphs do
   * not change until `GraphExec.update`.
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
   * Removes the node and its edges, and ends its inner graphs (`cuGraphDestroyNode`).
   * @throws StatusError in a graph with memory nodes, which can only grow; TypeError while a capture adds to a graph of
   * the node
   */
  remove(): void {
    const { handle } = this
    this.graph._requireNotCaptured(this, 'GraphNode.remove')
    check(cuGraphDestroyNode(handle), 'cuGraphDestroyNode')
    this.#isRemoved = true
    this.graph._forget(this)
  }

  /** @internal Sets the launch attributes of a kernel node (`cuGraphKernelNodeSetAttribute`). */
  _setAttributes(attributes: KernelAttributes): void {
    for (const { id, value } of attributes.entries()) {
      const attribute = id as CUlaunchAttributeID
      check(cuGraphKernelNodeSetAttribute(this.handle, attribute, value), 'cuGraphKernelNodeSetAttribute')
    }
  }

  /** @internal Checks that a description has this node's kind. @throws TypeError */
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

  /** Returns the line that `console.log` prints, for `JSON.stringify`. */
  toJSON(): string {
    return this[inspectKey]()
  }
}

/**
 * Sets a new node's launch attributes, or removes the node if the driver refuses them. A graph with memory nodes keeps
 * the node, because its nodes cannot be removed.
 */
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
