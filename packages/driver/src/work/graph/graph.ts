import {
  type CUgraph,
  type CUgraphNode,
  CUgraphNodeParams,
  cuGraphGetNodes,
  cuGraphGetRootNodes,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import {
  DisposedError,
  type ElementType,
  type OptionKeys,
  optionalBoolean,
  requireInstance,
  requireInteger,
  requireMade,
  requireOptions,
  withJson,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { check, Status } from '../../core/errors.js'
import { forgetLeak, Resource, watchForLeak } from '../../core/lifetime.js'
import type { Stream } from '../../core/stream/stream.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import { requireElementType } from '../../memory/buffers/elementType.js'
import { type CaptureOptions, capture, captureKeys } from './capture.js'
import { checkOf } from './checkOf.js'
import { type ChildGraphOptions, childGraphKeys, requireMoves } from './childGraph.js'
import { type ConditionalNode, type ConditionalOptions, checkConditional, createConditional } from './conditional.js'
import {
  changeEdge,
  edgesOf,
  type GraphEdge,
  type NodeOptions,
  nodeKeys,
  none,
  requireNodeOptions,
  requireNodes,
} from './edges.js'
import { addedHigh, addedLow, addNodeCall } from './graphCalls.js'
import { describeGraph, type GraphDescription } from './graphDescription.js'
import { GraphExec, type InstantiateOptions } from './graphExec.js'
import {
  childHandle,
  cloneHandle,
  createHandle,
  destroyHandle,
  listNodes,
  nodeInClone,
  typeOfNode,
  writeDotFile,
} from './graphHandle.js'
import { allocationParameters, freeParameters } from './graphMemory.js'
import { type EdgeData, GraphNode, setAttributesOrRemove } from './graphNode.js'
import { type NodeDescription, requireDescription } from './nodeDescription.js'
import { NodeIndex } from './nodeIndex.js'
import { NodeResources } from './nodeResources.js'
import { codeOfType, type GraphNodeType } from './nodeTypes.js'
import { requireGraph, requireWhole, setGraphBrand } from './requireGraph.js'

const captureIntoKeys: OptionKeys<CaptureOptions & NodeOptions> = { ...captureKeys, ...nodeKeys }

/** Memory that a graph allocates. */
export interface GraphAllocation<E extends ElementType> {
  /** The node that allocates the memory. */
  readonly node: GraphNode
  /**
   * The memory. Its address is already fixed; its contents exist from the node that allocates it to the node that frees
   * it.
   */
  readonly memory: DeviceBuffer<E>
}

/**
 * A graph of work: built once by adding nodes or capturing streams, then launched often as an executable graph.
 *
 * @example
 * using graph = Graph.capture(stream, () => {
 *   kernel.launch({ grid: 64, block: 256, stream }, x, y)
 *   communicator.allReduce(y, y, { stream })
 * })
 * using step = graph.instantiate()
 * for (let turn = 0; turn < 1000; turn += 1) step.launch(stream)
 * await stream.synchronize()
 */
export class Graph extends Resource {
  protected readonly kind = 'Graph'
  /** The context of nodes without an explicit context. */
  readonly context: Context
  /** @internal Resources of the nodes. A part shares those of its outer graph. */
  _resources: NodeResources
  /** @internal Whether the graph is a child graph or a body of a conditional node. */
  _isPart: boolean
  readonly #handle: CUgraph
  /** The node of this graph, if the graph is a part. */
  #node: GraphNode | undefined
  /** Whether that node was removed or has another graph. */
  #isEnded = false
  /** The graphs inside this graph's nodes. */
  readonly #parts = new Map<GraphNode, readonly Graph[]>()
  readonly #nodes = new NodeIndex<GraphNode>()
  #halves: U64Halves | undefined
  /** Captures that add to this graph or a part of it. The graph is destroyed after them. */
  #captures = 0

  /** @internal @param node the node of which this graph is a part */
  constructor(context: Context, handle: CUgraph, node?: GraphNode) {
    requireMade(handle, 'Graph', 'Graph.create or Graph.capture')
    super()
    this.context = context
    this.#handle = handle
    this.#node = node
    this._isPart = node !== undefined
    const resources = node?.graph._resources ?? new NodeResources(context)
    this._resources = resources
    if (node !== undefined) return
    watchForLeak(this, `A Graph of device ${context.device.ordinal}`, () => {
      destroyHandle(context, handle, resources)
      return 'it was destroyed now'
    })
  }

  static {
    setGraphBrand((value) => #handle in value)
  }

  /** Creates an empty graph (`cuGraphCreate`). @throws TypeError, DisposedError, StatusError */
  static create(owner: DeviceOrContext): Graph {
    const context = contextOf(owner, 'Graph.create')
    return new Graph(context, createHandle(context))
  }

  /**
   * Captures the work that `fn` queues on the stream, without running it (`cuStreamBeginCapture`,
   * `cuStreamEndCapture`). Includes other streams that wait for an event of this stream, if this stream then waits for
   * them. During the capture, waiting for the stream throws, and so do copies of ordinary arrays, because these may not
   * exist at a launch. The graph keeps all objects that the calls used, but not raw addresses. After one of them was
   * disposed of, launches throw `DisposedError`.
   * @param fn a synchronous function; if it throws, the capture ends too
   * @throws errors of `fn`; TypeError; StatusError with the reason when the capture fails
   */
  static capture(stream: Stream, fn: (stream: Stream) => void, options: CaptureOptions = {}): Graph {
    const resources = new NodeResources()
    try {
      const handle = capture(stream, fn, options, 'Graph.capture', resources)
      const graph = new Graph(stream.context, handle)
      graph._resources.addAll(resources)
      return graph
    } finally {
      resources.release()
    }
  }

  /**
   * Captures like {@link Graph.capture} into this graph, after the given nodes (`cuStreamBeginCaptureToGraph`).
   * @throws VersionTooOldError before CUDA 12.3; as {@link Graph.capture}
   */
  capture(stream: Stream, fn: (stream: Stream) => void, options: CaptureOptions & NodeOptions = {}): this {
    const api = 'Graph.capture'
    const { handle } = this
    requireOptions(options, api, captureIntoKeys)
    const { dependencies, ...mode } = options
    const into = { handle, dependencies: requireNodes(this, dependencies, api).map((node) => node.handle) }
    const around = this.#around()
    for (const graph of around) graph.#captures += 1
    try {
      capture(stream, fn, mode, api, this._resources, into)
    } finally {
      for (const graph of around) graph.#captures -= 1
      const [whole] = around.slice(-1) as [Graph]
      if (whole._disposed) whole.release()
    }
    return this
  }

  /**
   * Creates an executable graph from the graph's current state (`cuGraphInstantiateWithParams`).
   * @throws TypeError, also for a part of another graph; StatusError with the reason; DisposedError when a needed
   * object is gone
   */
  instantiate(options: InstantiateOptions = {}): GraphExec {
    this._requireUsable()
    if (this._isPart)
      throw new TypeError('Graph.instantiate: the graph is part of another one, which is instantiated as a whole')
    this._resources.check('Graph.instantiate')
    return GraphExec._create(this, options, 'Graph.instantiate')
  }

  /**
   * Copies the graph and its nodes (`cuGraphClone`); see {@link findInClone}. @throws StatusError for a graph with
   * memory or conditional nodes
   */
  clone(): Graph {
    const copy = new Graph(this.context, cloneHandle(this.handle))
    copy._resources.addAll(this._resources)
    return copy
  }

  /** The `CUgraph`, which is also the `cudaGraph_t`. @throws DisposedError */
  get handle(): CUgraph {
    this._requireUsable()
    return this.#handle
  }

  /**
   * Adds a node (`cuGraphAddNode`).
   * @throws TypeError, RangeError; VersionTooOldError before CUDA 12.3; DisposedError, StatusError
   *
   * @example
   * const clear = graph.add(fillNode(sums, 0))
   * const run = graph.add(kernelNode(kernel, { grid: 8, block: 256 }, x, sums), { dependencies: [clear] })
   */
  add(description: NodeDescription, options?: NodeOptions): GraphNode {
    const api = 'Graph.add'
    this._requireUsable()
    const checked = requireDescription(description, api, 'description')
    // Read these before the parameters: a getter may add a node itself, in the same memory.
    const dependencies =
      options === undefined ? none : requireNodes(this, requireNodeOptions(options, api).dependencies, api)
    const { halves, memory } = checked._write(this.context, api)
    const node = this.#addNode(halves, dependencies, checked.type)
    void memory
    if (checked._attributes !== undefined) setAttributesOrRemove(node, checked._attributes)
    this._resources.addNeedsOf(checked)
    return node
  }

  /**
   * Adds a whole graph as one node (`cuGraphAddNode`): a copy, or with `move` the graph itself (see
   * {@link ChildGraphOptions}).
   * @throws TypeError for a graph that cannot be moved there; VersionTooOldError for `move` before CUDA 12.9;
   * DisposedError; StatusError for a graph with conditional nodes, a copy of one with memory nodes, and a move of a
   * graph with memory nodes that has an executable graph
   */
  addGraph(graph: Graph, options: ChildGraphOptions = {}): GraphNode {
    const api = 'Graph.addGraph'
    requireOptions(options, api, childGraphKeys)
    this._requireUsable()
    requireGraph(graph, api)
    const isMoved = optionalBoolean(options.move, api, 'move', false)
    const dependencies = requireNodes(this, options.dependencies, api)
    if (isMoved) this.#requireMovable(graph, api)
    const parameters = CUgraphNodeParams.allocate({
      type: codeOfType('graph'),
      graph: { graph: graph.handle, ownership: isMoved ? 1 : 0 },
    })
    const node = this.#addStruct(parameters, dependencies, 'graph')
    this._resources.addAll(graph._resources)
    if (isMoved) graph.#becomePartOf(node)
    return node
  }

  /**
   * Adds a node that allocates memory for `length` elements (`CU_GRAPH_NODE_TYPE_MEM_ALLOC`). The graph owns the memory
   * until {@link free} of this or a later graph, or until a launch with `autoFreeOnLaunch`. Disposing of the buffer
   * frees nothing.
   * @throws TypeError, RangeError; DisposedError, StatusError
   */
  allocate<E extends ElementType>(dtype: E, length: number, options: NodeOptions = {}): GraphAllocation<E> {
    const api = 'Graph.allocate'
    this._requireUsable()
    const { context } = this
    const { bytes } = requireElementType(dtype, api)
    const byteLength = bytes * requireInteger(length, api, 'length', 1, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
    requireOptions(options, api, nodeKeys)
    const parameters = allocationParameters(context.device.ordinal, byteLength)
    const node = this.#addStruct(parameters, requireNodes(this, options.dependencies, api), 'mem-alloc')
    const address = CUgraphNodeParams.read(parameters).alloc.dptr
    return { node, memory: DeviceBuffer.fromAddress(context, address, dtype, length, { keep: this }) }
  }

  /** Adds a node that frees memory of {@link allocate}, of this or another graph (`CU_GRAPH_NODE_TYPE_MEM_FREE`). */
  free(memory: DeviceBuffer<ElementType>, options: NodeOptions = {}): GraphNode {
    const api = 'Graph.free'
    this._requireUsable()
    requireInstance(memory, api, 'memory', DeviceBuffer)
    requireOptions(options, api, nodeKeys)
    const parameters = freeParameters(memory.address)
    return this.#addStruct(parameters, requireNodes(this, options.dependencies, api), 'mem-free')
  }

  /**
   * Adds a node that runs inner graphs depending on a value that kernels set (`CU_GRAPH_NODE_TYPE_CONDITIONAL`).
   * @throws TypeError, RangeError; VersionTooOldError before CUDA 12.4; DisposedError, StatusError
   */
  addConditional(options: ConditionalOptions): ConditionalNode {
    const api = 'Graph.addConditional'
    const { handle, context } = this
    const checked = checkConditional(options, api)
    const dependencies = requireNodes(this, checked.dependencies, api)
    const made = createConditional(context, handle, checked)
    const node = this.#addStruct(made.parameters, dependencies, 'conditional')
    const bodies = made.bodies().map((body) => new Graph(context, body, node))
    this.#parts.set(node, bodies)
    return withJson({ node, handle: made.handle, bodies })
  }

  /** All nodes, in the order of their addition (`cuGraphGetNodes`). */
  get nodes(): readonly GraphNode[] {
    return listNodes('cuGraphGetNodes', (nodes, _, count) => cuGraphGetNodes(this.handle, nodes, count)).map((node) =>
      this._node(node),
    )
  }

  /** The nodes without dependencies (`cuGraphGetRootNodes`). */
  get rootNodes(): readonly GraphNode[] {
    return listNodes('cuGraphGetRootNodes', (nodes, _, count) => cuGraphGetRootNodes(this.handle, nodes, count)).map(
      (node) => this._node(node),
    )
  }

  /** All dependencies between nodes (`cuGraphGetEdges`). */
  get edges(): readonly GraphEdge[] {
    return edgesOf(this.handle, (node) => this._node(node))
  }

  /**
   * Makes `to` wait for `from` (`cuGraphAddDependencies`).
   * @throws TypeError for nodes of another graph; StatusError for a cycle or an existing dependency
   */
  addDependency(from: GraphNode, to: GraphNode, data: Partial<EdgeData> = {}): void {
    changeEdge(this, from, to, data, true)
  }

  /** Removes a dependency (`cuGraphRemoveDependencies`). @throws StatusError when it does not exist */
  removeDependency(from: GraphNode, to: GraphNode, data: Partial<EdgeData> = {}): void {
    changeEdge(this, from, to, data, false)
  }

  /**
   * Returns this clone's copy of the node `original` (`cuGraphNodeFindInClone`). @throws StatusError when it has none
   */
  findInClone(original: GraphNode): GraphNode {
    requireInstance(original, 'Graph.findInClone', 'original', GraphNode)
    return this._node(nodeInClone(original.handle, this.handle))
  }

  /** Writes a Graphviz drawing of the graph to a file (`cuGraphDebugDotPrint`). */
  writeDot(path: string, options: { readonly verbose?: boolean | undefined } = {}): void {
    writeDotFile(this.handle, path, options, 'Graph.writeDot')
  }

  /** Returns the nodes by number and the edges between them; empty after the graph or its context is gone. */
  override toJSON(): GraphDescription {
    if (this.#isGone) return { nodes: [], edges: [] }
    return describeGraph(this.nodes, this.edges)
  }

  /**
   * Keeps objects alive that the graph uses but that no call named: memory behind a raw address, modules, events. A
   * launch after one of them was disposed of throws `DisposedError`. Captured calls keep their objects automatically.
   */
  keep(...objects: readonly { readonly disposed: boolean }[]): this {
    this._requireUsable()
    for (const [index, object] of objects.entries())
      this._resources.add(object, checkOf(object, 'Graph.keep', `objects[${index}]`))
    return this
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal, handle: this.#handle }
  }

  /**
   * Destroys the graph (`cuGraphDestroy`). Does nothing for a graph inside another graph, which ends with the outer
   * graph or with its node.
   */
  override dispose(): void {
    if (!this._isPart) super.dispose()
  }

  /** Whether the graph was disposed of; for a part, whether its node or its outer graph is gone. */
  override get disposed(): boolean {
    return this._disposed || this.#isEnded || this.#node?.graph.disposed === true
  }

  protected release(): void {
    if (this.#captures > 0) return
    forgetLeak(this)
    destroyHandle(this.context, this.#handle, this._resources)
  }

  /** @internal @throws DisposedError when the graph, its node, its outer graph, or its context is gone */
  _requireUsable(): void {
    this._requireAlive()
    if (this.#isEnded) throw new DisposedError('Graph (its node was removed, or has another one)')
    this.#node?.graph._requireUsable()
    this.context._requireAlive()
  }

  get #isGone(): boolean {
    const around = this.#node?.graph
    const isGone = this._disposed || this.#isEnded || this.context.disposed
    return around === undefined ? isGone : isGone || around.#isGone
  }

  /** This graph and its outer graphs. */
  #around(): readonly Graph[] {
    const around: Graph[] = []
    for (let graph: Graph | undefined = this; graph !== undefined; graph = graph.#node?.graph) around.push(graph)
    return around
  }

  /** @internal Whether this graph is `graph` or a part of it. */
  _isWithin(graph: Graph): boolean {
    return this.#around().includes(graph)
  }

  /** @throws TypeError, VersionTooOldError */
  #requireMovable(graph: Graph, api: string): void {
    requireMoves(`${api} with move`)
    requireWhole(graph, api)
    if (this._isWithin(graph)) throw wrongType(api, 'graph', 'another graph than what it is added to', graph)
    if (graph.#captures > 0) throw wrongType(api, 'graph', 'a graph that no capture adds to', graph)
  }

  /** Makes this graph a part of another one, which then has its resources. */
  #becomePartOf(node: GraphNode): void {
    forgetLeak(this)
    this.#node = node
    this._isPart = true
    node.graph.#parts.set(node, [this])
    const own = this._resources
    this.#share(node.graph._resources)
    own.release()
  }

  #share(resources: NodeResources): void {
    this._resources = resources
    for (const part of [...this.#parts.values()].flat()) part.#share(resources)
  }

  /** @internal The graphs of a node. */
  _partsOf(node: GraphNode): readonly Graph[] {
    return node.type === 'graph' ? [this._childOf(node)] : (this.#parts.get(node) ?? [])
  }

  /**
   * @internal The graph of a child graph node. Always the same object, so that its nodes notice each other's removal.
   */
  _childOf(node: GraphNode): Graph {
    const [known] = this.#parts.get(node) ?? []
    if (known !== undefined) return known
    const child = new Graph(this.context, childHandle(node.handle), node)
    this.#parts.set(node, [child])
    return child
  }

  /** @internal @throws TypeError when a capture adds to a graph of the node */
  _requireNotCaptured(node: GraphNode, api: string): void {
    if (this.#parts.get(node)?.some((part) => part.#captures > 0) === true)
      throw new TypeError(`${api}: a capture adds to the graph of this node`)
  }

  /** @internal Ends the graphs of a removed node. */
  _endParts(node: GraphNode): void {
    for (const part of this.#parts.get(node) ?? []) {
      part.#isEnded = true
      part.#node = undefined
    }
    this.#parts.delete(node)
  }

  /** Adds the node that `CUgraphNodeParams` describe. C writes results into the parameters. */
  #addStruct(parameters: Uint8Array, dependencies: readonly GraphNode[], type: GraphNodeType): GraphNode {
    const native = NativeMemory.allocate(parameters.byteLength)
    native.bytes.set(parameters)
    const node = this.#addNode(halvesOf(native.address), dependencies, type)
    parameters.set(native.bytes)
    return node
  }

  #addNode(parameters: U64Halves, dependencies: readonly GraphNode[], type: GraphNodeType): GraphNode {
    // Getters of the description may have disposed of the graph or of a node.
    this._requireUsable()
    this.#halves ??= halvesOf(this.#handle)
    const status = addNodeCall(this.context._halves, this.#halves, dependencies, parameters)
    if (status !== Status.success) check(status, 'cuGraphAddNode')
    return this.#nodes.add(new GraphNode(this, addedLow(), addedHigh(), type, this.#nodes.lastAdded))
  }

  /** @internal Returns the object of a node. */
  _node(handle: CUgraphNode): GraphNode {
    return this.#nodes.find(handle, () => {
      const { low, high } = halvesOf(handle)
      return new GraphNode(this, low, high, typeOfNode(handle), undefined)
    })
  }

  /** @internal Forgets a removed node. */
  _forget(node: GraphNode): void {
    this.#nodes.delete(node)
    this._endParts(node)
  }
}
