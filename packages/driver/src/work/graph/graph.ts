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
  /** The node that allocates it. */
  readonly node: GraphNode
  /** Its address is known from now on; its contents are there between the nodes that allocate and free it. */
  readonly memory: DeviceBuffer<E>
}

/**
 * Work with its order, built once and run many times, by an executable graph made of it. Nodes are added by hand, or
 * captured from streams.
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
  /** The context of nodes that name none. */
  readonly context: Context
  /** @internal What its nodes need; a part has that of the graph around it. */
  _resources: NodeResources
  /** @internal Whether it is a child graph, or a body of a conditional node. */
  _isPart: boolean
  readonly #handle: CUgraph
  /** The node that it is of, where it is a part. */
  #node: GraphNode | undefined
  /** That node was removed, or has another graph. */
  #isEnded = false
  /** The graphs of its nodes. */
  readonly #parts = new Map<GraphNode, readonly Graph[]>()
  readonly #nodes = new NodeIndex<GraphNode>()
  #halves: U64Halves | undefined
  /** Captures that add to it, or to a part of it: it is destroyed after them. */
  #captures = 0

  /** @internal @param node what it is a part of another graph by. */
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

  /** An empty graph (`cuGraphCreate`). @throws TypeError, DisposedError, StatusError */
  static create(owner: DeviceOrContext): Graph {
    const context = contextOf(owner, 'Graph.create')
    return new Graph(context, createHandle(context))
  }

  /**
   * A graph of what `fn` queues on the stream, and on streams that wait for events of it and are waited for again:
   * nothing of it runs now (`cuStreamBeginCapture`, `cuStreamEndCapture`). The capture ends also when `fn` throws.
   * Meanwhile, what would wait for the stream is refused, and so are copies of ordinary arrays, which would not be
   * there at a launch. The graph keeps all objects that the calls used; bare addresses keep nothing. After one of them
   * was disposed of, launches throw `DisposedError`.
   * @param fn must not be asynchronous.
   * @throws what `fn` throws; TypeError; StatusError when the capture came to nothing, with the reason
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
   * Captures as {@link Graph.capture} does, into this graph, behind the nodes named (`cuStreamBeginCaptureToGraph`).
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
   * Makes an executable graph of the graph as it is now (`cuGraphInstantiateWithParams`).
   * @throws TypeError, also for a part of another graph; StatusError with the reason, and DisposedError when something
   * that it needs is gone
   */
  instantiate(options: InstantiateOptions = {}): GraphExec {
    this._requireUsable()
    if (this._isPart)
      throw new TypeError('Graph.instantiate: the graph is part of another one, which is instantiated as a whole')
    this._resources.check('Graph.instantiate')
    return GraphExec._create(this, options, 'Graph.instantiate')
  }

  /**
   * A copy with nodes of its own, see {@link findInClone} (`cuGraphClone`). @throws StatusError for one with nodes of
   * memory or conditions
   */
  clone(): Graph {
    const copy = new Graph(this.context, cloneHandle(this.handle))
    copy._resources.addAll(this._resources)
    return copy
  }

  /** The `CUgraph`, which also is the `cudaGraph_t`. @throws DisposedError */
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
    // Before the parameters: a getter may add a node of its own, in the same memory.
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
   * Adds a whole graph as one node (`cuGraphAddNode`): a copy of it, or with `move` the graph itself, as
   * {@link ChildGraphOptions} says.
   * @throws TypeError for a graph that cannot be moved there; VersionTooOldError for `move` before CUDA 12.9;
   * DisposedError; StatusError for one with conditional nodes, a copy of one with nodes of memory, and a move of one
   * with these that has an executable graph
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
   * Adds a node that allocates memory for `length` elements when it runs (`CU_GRAPH_NODE_TYPE_MEM_ALLOC`). The memory
   * is the graph's until {@link free}, of this graph or of one launched later, or a launch with `autoFreeOnLaunch`.
   * Disposing of the buffer gives nothing back.
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

  /**
   * Adds a node that frees memory of {@link allocate}, of this graph or another one (`CU_GRAPH_NODE_TYPE_MEM_FREE`).
   */
  free(memory: DeviceBuffer<ElementType>, options: NodeOptions = {}): GraphNode {
    const api = 'Graph.free'
    this._requireUsable()
    requireInstance(memory, api, 'memory', DeviceBuffer)
    requireOptions(options, api, nodeKeys)
    const parameters = freeParameters(memory.address)
    return this.#addStruct(parameters, requireNodes(this, options.dependencies, api), 'mem-free')
  }

  /**
   * Adds a node that runs graphs of its own as a value says that kernels set (`CU_GRAPH_NODE_TYPE_CONDITIONAL`).
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

  /** All nodes, in the order in which they were added (`cuGraphGetNodes`). */
  get nodes(): readonly GraphNode[] {
    return listNodes('cuGraphGetNodes', (nodes, _, count) => cuGraphGetNodes(this.handle, nodes, count)).map((node) =>
      this._node(node),
    )
  }

  /** The nodes that wait for none (`cuGraphGetRootNodes`). */
  get rootNodes(): readonly GraphNode[] {
    return listNodes('cuGraphGetRootNodes', (nodes, _, count) => cuGraphGetRootNodes(this.handle, nodes, count)).map(
      (node) => this._node(node),
    )
  }

  /** What waits for what (`cuGraphGetEdges`). */
  get edges(): readonly GraphEdge[] {
    return edgesOf(this.handle, (node) => this._node(node))
  }

  /**
   * Makes `to` wait for `from` (`cuGraphAddDependencies`).
   * @throws TypeError for nodes of another graph; StatusError where that closes a circle or is there already
   */
  addDependency(from: GraphNode, to: GraphNode, data: Partial<EdgeData> = {}): void {
    changeEdge(this, from, to, data, true)
  }

  /**
   * Ends what {@link addDependency}, or adding the node, began (`cuGraphRemoveDependencies`). @throws StatusError where
   * it is not so
   */
  removeDependency(from: GraphNode, to: GraphNode, data: Partial<EdgeData> = {}): void {
    changeEdge(this, from, to, data, false)
  }

  /**
   * The node of this clone that was made of `original` (`cuGraphNodeFindInClone`). @throws StatusError when there is
   * none
   */
  findInClone(original: GraphNode): GraphNode {
    requireInstance(original, 'Graph.findInClone', 'original', GraphNode)
    return this._node(nodeInClone(original.handle, this.handle))
  }

  /** Writes a drawing of the graph for Graphviz to a file (`cuGraphDebugDotPrint`). */
  writeDot(path: string, options: { readonly verbose?: boolean | undefined } = {}): void {
    writeDotFile(this.handle, path, options, 'Graph.writeDot')
  }

  /** Nodes by number and the edges between them; none once the graph, or its context, is gone. */
  override toJSON(): GraphDescription {
    if (this.#isGone) return { nodes: [], edges: [] }
    return describeGraph(this.nodes, this.edges)
  }

  /**
   * Keeps objects that no call named: memory behind a bare address, modules, events. A launch after one of them was
   * disposed of throws `DisposedError`. Captured calls keep what they use without this.
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

  /** Destroys it (`cuGraphDestroy`). A part of another graph is left as it is: it ends with that, or with its node. */
  override dispose(): void {
    if (!this._isPart) super.dispose()
  }

  /** Whether it was disposed of; of a part, whether its node or the graph around it is gone. */
  override get disposed(): boolean {
    return this._disposed || this.#isEnded || this.#node?.graph.disposed === true
  }

  protected release(): void {
    if (this.#captures > 0) return
    forgetLeak(this)
    destroyHandle(this.context, this.#handle, this._resources)
  }

  /** @internal @throws DisposedError when it, the node that it is of, the graph around it, or its context is gone. */
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

  /** It, and the graphs around it. */
  #around(): readonly Graph[] {
    const around: Graph[] = []
    for (let graph: Graph | undefined = this; graph !== undefined; graph = graph.#node?.graph) around.push(graph)
    return around
  }

  /** @internal Whether it is `graph`, or a part of it. */
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

  /** What it needs is with the graph around it by then. */
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

  /** @internal The graph of a child graph node, the same each time: its nodes know of each other's end. */
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

  /** @internal The graphs of a node are gone. */
  _endParts(node: GraphNode): void {
    for (const part of this.#parts.get(node) ?? []) {
      part.#isEnded = true
      part.#node = undefined
    }
    this.#parts.delete(node)
  }

  /** Adds what `CUgraphNodeParams` describe; they are changed where they give something back. */
  #addStruct(parameters: Uint8Array, dependencies: readonly GraphNode[], type: GraphNodeType): GraphNode {
    const native = NativeMemory.allocate(parameters.byteLength)
    native.bytes.set(parameters)
    const node = this.#addNode(halvesOf(native.address), dependencies, type)
    parameters.set(native.bytes)
    return node
  }

  #addNode(parameters: U64Halves, dependencies: readonly GraphNode[], type: GraphNodeType): GraphNode {
    // Getters of what is added may have disposed of the graph, or of a node.
    this._requireUsable()
    this.#halves ??= halvesOf(this.#handle)
    const status = addNodeCall(this.context._halves, this.#halves, dependencies, parameters)
    if (status !== Status.success) check(status, 'cuGraphAddNode')
    return this.#nodes.add(new GraphNode(this, addedLow(), addedHigh(), type, this.#nodes.lastAdded))
  }

  /** @internal The object of a node. */
  _node(handle: CUgraphNode): GraphNode {
    return this.#nodes.find(handle, () => {
      const { low, high } = halvesOf(handle)
      return new GraphNode(this, low, high, typeOfNode(handle), undefined)
    })
  }

  /** @internal The node is gone. */
  _forget(node: GraphNode): void {
    this.#nodes.delete(node)
    this._endParts(node)
  }
}
