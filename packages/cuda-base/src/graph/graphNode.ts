import { check, type U64Halves, u64Of } from '@shoal/cuda-base'
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
import { DisposedError, inspectKey, inspectLine, loadedFrom } from '@shoal/types'
import type { Graph } from './graph.js'
import { type KernelNodeAttribute, type NodeDescription, requireDescription } from './nodeDescription.js'
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
  static readonly [loadedFrom]: string = import.meta.url

  /** The graph it is in. */
  readonly graph: Graph
  /** What it does. */
  readonly type: GraphNodeType
  /** @internal The halves of its handle: a graph has many nodes, and few are asked for a bigint. */
  readonly _halves: U64Halves
  /** @internal */
  _isRemoved = false

  /** @internal */
  constructor(graph: Graph, halves: U64Halves, type: GraphNodeType) {
    this.graph = graph
    this._halves = halves
    this.type = type
  }

  /** The `CUgraphNode`. @throws DisposedError once its graph was disposed of, or it was removed. */
  get handle(): CUgraphNode {
    if (this._isRemoved) throw new DisposedError('GraphNode (it was removed)')
    this.graph._requireUsable()
    return u64Of(this._halves) as CUgraphNode
  }

  /** The nodes it runs behind (`cuGraphNodeGetDependencies`). */
  get dependencies(): readonly GraphNode[] {
    return this.graph._nodesBy('cuGraphNodeGetDependencies', (nodes, edges, count) =>
      cuGraphNodeGetDependencies(this.handle, nodes, edges, count),
    )
  }

  /** The nodes that run behind it (`cuGraphNodeGetDependentNodes`). */
  get dependents(): readonly GraphNode[] {
    return this.graph._nodesBy('cuGraphNodeGetDependentNodes', (nodes, edges, count) =>
      cuGraphNodeGetDependentNodes(this.handle, nodes, edges, count),
    )
  }

  /**
   * Gives the node other parameters, of its own kind (`cuGraphNodeSetParams`). Executable graphs that were made already stay
   * as they are: `GraphExec.update` brings them there.
   * @throws TypeError for a description of another kind; DisposedError, StatusError
   */
  update(description: NodeDescription): this {
    const api = 'GraphNode.update'
    const checked = requireDescription(description, api, 'description')
    this._requireKind(checked, api)
    const { parameters, memory } = checked._write(this.graph.context, api)
    this.graph.context._callDriver('cuGraphNodeSetParams', () => cuGraphNodeSetParams(this.handle, parameters))
    this._setAttributes(checked._kernelAttributes)
    this.graph._resources.add(checked._needs, checked._callback)
    void memory
    return this
  }

  /** Takes the node and its edges out of the graph (`cuGraphDestroyNode`). @throws StatusError for a node of memory, which stays. */
  remove(): void {
    const { handle } = this
    check(cuGraphDestroyNode(handle), 'cuGraphDestroyNode')
    this._isRemoved = true
    this.graph._forget(handle)
  }

  /** @internal What a kernel's launches have beside their parameters (`cuGraphKernelNodeSetAttribute`). */
  _setAttributes(attributes: readonly KernelNodeAttribute[]): void {
    for (const { id, value } of attributes) {
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
    return inspectLine('GraphNode', { type: this.type, handle: u64Of(this._halves) })
  }
}
