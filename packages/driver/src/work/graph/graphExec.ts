import {
  CUDA_GRAPH_INSTANTIATE_PARAMS,
  type CUgraphExec,
  CUgraphExecUpdateResultInfo,
  type CUgraphNode,
  type CUstream,
  cuGraphExecDestroy,
  cuGraphExecGetFlags,
  cuGraphExecNodeSetParams,
  cuGraphExecUpdate,
  cuGraphInstantiateWithParams,
  cuGraphNodeGetEnabled,
  cuGraphNodeSetEnabled,
  cuGraphUpload,
} from '@shoal/cuda-sys/driver'
import {
  type OptionKeys,
  optionalBoolean,
  requireBoolean,
  requireInstance,
  requireMade,
  requireOptions,
  type StreamArgument,
  wrongType,
} from '@shoal/types'
import { cuGraphLaunchUnchecked } from '../../core/calls/uncheckedCalls.gen.js'
import type { Context } from '../../core/context/context.js'
import { check, checkRelease, driverError, Status } from '../../core/errors.js'
import { forgetLeak, processIsEnding, Resource, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { Stream, streamFor, streamHalvesFor } from '../../core/stream/stream.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import type { Graph } from './graph.js'
import { GraphNode } from './graphNode.js'
import { type NodeDescription, requireDescription } from './nodeDescription.js'
import { NodeResources } from './nodeResources.js'
import type { GraphNodeType } from './nodeTypes.js'
import { requireGraph, requireWhole } from './requireGraph.js'

/** Options of an executable graph. */
export interface InstantiateOptions {
  /**
   * If true, a launch frees memory that an earlier launch left allocated; if false, the launch fails. Default: false.
   */
  readonly autoFreeOnLaunch?: boolean | undefined
  /**
   * Lets kernels of graphs launch this graph (`cudaGraphLaunch` in the kernel, with its handle), after its upload or
   * first launch. The graph must contain at least one node, and only kernels, copies without arrays, fills, and child
   * graphs of these, all on one device. Cannot be combined with `autoFreeOnLaunch`. Default: false.
   */
  readonly deviceLaunch?: boolean | undefined
  /** Uses the priorities of nodes instead of the stream's priority. Default: false. */
  readonly useNodePriority?: boolean | undefined
}

const instantiateKeys: OptionKeys<InstantiateOptions> = {
  autoFreeOnLaunch: true,
  deviceLaunch: true,
  useNodePriority: true,
}
const flagBits = { autoFreeOnLaunch: 1, deviceLaunch: 4, useNodePriority: 8 } as const

/** Reasons why a graph cannot be instantiated: names of `CUgraphInstantiateResult`. */
const instantiateResults = [
  'success',
  'error',
  'invalid structure',
  'an operation of a node is not supported',
  'nodes of several contexts are not supported',
  'a conditional handle that no node uses',
]

const updateResults = [
  'success',
  'error',
  'topology-changed',
  'node-type-changed',
  'function-changed',
  'parameters-changed',
  'not-supported',
  'unsupported-function-change',
  'attributes-changed',
] as const

/** Results of an update: names of `CUgraphExecUpdateResult`. */
export type GraphUpdateResult = (typeof updateResults)[number]

/** The outcome of an update. */
export interface GraphUpdate {
  /** The driver's result. */
  readonly result: GraphUpdateResult
  /** The node of the given graph that does not match, if there is one. */
  readonly node: GraphNode | undefined
}

/**
 * An executable graph: one call queues all its work. Later changes of the original graph do not affect it.
 *
 * @example
 * using step = graph.instantiate()
 * step.launch(stream) // returns immediately
 */
export class GraphExec extends Resource {
  protected readonly kind = 'GraphExec'
  /** The context of the original graph. */
  readonly context: Context
  readonly #handle: CUgraphExec
  readonly #halves: U64Halves
  readonly #resources = new NodeResources()
  /** Stream of the last launch, if the graph needs memory of caching pools. */
  #lastStream: { readonly given: StreamArgument | undefined; readonly stream: Stream } | undefined
  /** The original graph, while it is reachable. */
  readonly #source: WeakRef<Graph>

  private constructor(graph: Graph, handle: CUgraphExec) {
    requireMade(handle, 'GraphExec', 'Graph.instantiate')
    super()
    const { context } = graph
    this.context = context
    this.#handle = handle
    this.#halves = halvesOf(handle)
    this.#source = new WeakRef(graph)
    const resources = this.#resources
    resources.addAll(graph._resources)
    watchForLeak(this, `A GraphExec of device ${context.device.ordinal}`, () => {
      destroy(context, handle, resources)
      return 'it is destroyed when its work has ended'
    })
  }

  /** @internal */
  static _create(graph: Graph, options: InstantiateOptions, api: string): GraphExec {
    requireOptions(options, api, instantiateKeys)
    let flags = 0
    for (const [key, bit] of Object.entries(flagBits) as [keyof typeof flagBits, number][]) {
      if (optionalBoolean(options[key], api, key, false)) flags |= bit
    }
    if ((flags & flagBits.autoFreeOnLaunch) !== 0 && (flags & flagBits.deviceLaunch) !== 0)
      throw new TypeError(`${api}: autoFreeOnLaunch and deviceLaunch cannot be combined`)
    const out = scratch()
    const { handle, context } = graph
    const parameters = CUDA_GRAPH_INSTANTIATE_PARAMS.allocate({ flags: BigInt(flags) })
    let status: number = Status.success
    context.run(() => {
      status = cuGraphInstantiateWithParams(out, handle, parameters)
    })
    if (status === Status.success) return new GraphExec(graph, out.u64[0] as CUgraphExec)
    const { result_out: result, hErrNode_out: node } = CUDA_GRAPH_INSTANTIATE_PARAMS.read(parameters)
    const where = (node as bigint) === 0n ? '' : `, at ${describeNode(graph, node as CUgraphNode)}`
    const reason = `reason: ${instantiateResults[result] ?? result}${where}`
    throw driverError(
      status,
      'cuGraphInstantiateWithParams',
      [reason, hintFor(status, graph)].filter(Boolean).join('; '),
    )
  }

  /** The `CUgraphExec`, which is also the `cudaGraphExec_t`. @throws DisposedError */
  get handle(): CUgraphExec {
    this._requireAlive()
    this.context._requireAlive()
    return this.#handle
  }

  /** Flags from the instantiation (`cuGraphExecGetFlags`). */
  get flags(): Required<{ readonly [K in keyof typeof flagBits]: boolean }> {
    const out = scratch()
    check(cuGraphExecGetFlags(this.handle, out), 'cuGraphExecGetFlags')
    const bits = Number(out.u64[0])
    const has = (bit: number): boolean => (bits & bit) !== 0
    return { autoFreeOnLaunch: has(1), deviceLaunch: has(4), useNodePriority: has(8) }
  }

  /**
   * Queues all work of the graph on a stream and returns immediately (`cuGraphLaunch`). Launches run one after the
   * other, even on different streams.
   * @param stream Default: the default stream of the graph's device.
   * @throws DisposedError, also when memory or another needed object is gone; TypeError, StatusError
   *
   * @example
   * for (let turn = 0; turn < 1000; turn += 1) step.launch(stream)
   * await stream.synchronize()
   */
  launch(stream?: StreamArgument): void {
    this._requireAlive()
    const { context } = this
    context._requireAlive()
    const queue = streamHalvesFor(context, stream, 'GraphExec.launch')
    this.#resources.check('GraphExec.launch')
    const status = cuGraphLaunchUnchecked(context._halves, this.#halves, queue)
    if (status !== Status.success) throw driverError(status, 'cuGraphLaunch')
    if (this.#resources.hasBlocks) this.#resources.recordUse(this.#streamOf(stream))
  }

  /** Returns the same object for the same stream, because pools keep it. */
  #streamOf(given: StreamArgument | undefined): Stream {
    const { context } = this
    const known = this.#lastStream
    if (known !== undefined && known.given === given) return known.stream
    const stream = given === undefined ? Stream.borrow(context, 0n) : Stream.from(context, given)
    this.#lastStream = { given, stream }
    return stream
  }

  /** @internal @throws DisposedError when the graph or a needed object is gone */
  _requireUsable(operation: string): void {
    this._requireAlive()
    this.context._requireAlive()
    this.#resources.check(operation)
  }

  /**
   * Uploads the graph to the device, so that the first launch is as fast as the others (`cuGraphUpload`). Launches by
   * kernels require an upload, and use changes of the graph only after the next upload.
   */
  upload(stream?: StreamArgument): void {
    const { handle, context } = this
    const queue: CUstream = streamFor(context, stream, 'GraphExec.upload')
    context._callDriver('cuGraphUpload', () => cuGraphUpload(handle, queue))
  }

  /**
   * Replaces all parameters by the parameters of a graph with the same shape, without a new instantiation
   * (`cuGraphExecUpdate`). If the shapes differ, nothing changes and the result contains the reason. Afterwards this
   * graph needs exactly the objects of the given graph.
   * @throws TypeError, DisposedError; StatusError for other failures
   */
  update(graph: Graph): GraphUpdate {
    const api = 'GraphExec.update'
    const { handle, context } = this
    requireGraph(graph, api)
    requireWhole(graph, api)
    graph._resources.check('GraphExec.update')
    const info = CUgraphExecUpdateResultInfo.allocate()
    let status: number = Status.success
    context.run(() => {
      status = cuGraphExecUpdate(handle, graph.handle, info)
    })
    const { result, errorFromNode } = CUgraphExecUpdateResultInfo.read(info)
    const name = updateResults[result]
    if (status !== Status.success && (name === undefined || name === 'success'))
      throw driverError(status, 'cuGraphExecUpdate', hintFor(status, graph))
    if (status === Status.success) this.#resources.replaceBy(graph._resources)
    const node = (errorFromNode as bigint) === 0n ? undefined : locate(graph, errorFromNode as CUgraphNode)
    return { result: name ?? 'error', node }
  }

  /**
   * Replaces one node's parameters for later launches (`cuGraphExecNodeSetParams`).
   * @param node a node of the original graph
   * @throws TypeError for a description of another kind, or with launch attributes; DisposedError, StatusError
   */
  updateNode(node: GraphNode, description: NodeDescription): this {
    const api = 'GraphExec.updateNode'
    const { handle, context } = this
    this.#requireNode(node, api)
    const checked = requireDescription(description, api, 'description')
    node._requireKind(checked, api)
    // CUDA has no call for launch attributes here, so they would be lost silently.
    if (checked._attributes !== undefined && checked._attributes.count > 0)
      throw new TypeError(
        `${api}: description must have no launch attributes; use GraphNode.update and then GraphExec.update`,
      )
    const { parameters, memory } = checked._write(context, api)
    context._callDriver('cuGraphExecNodeSetParams', () => cuGraphExecNodeSetParams(handle, node.handle, parameters))
    void memory
    this.#resources.addNeedsOf(checked)
    return this
  }

  /**
   * Disables or enables a kernel, copy or fill for later launches (`cuGraphNodeSetEnabled`).
   * @throws TypeError, DisposedError; StatusError for nodes of another kind
   */
  setEnabled(node: GraphNode, enabled: boolean): this {
    const api = 'GraphExec.setEnabled'
    const { handle } = this
    this.#requireNode(node, api)
    check(
      cuGraphNodeSetEnabled(handle, node.handle, requireBoolean(enabled, api, 'enabled') ? 1 : 0),
      'cuGraphNodeSetEnabled',
    )
    return this
  }

  /** Whether launches run the node (`cuGraphNodeGetEnabled`). */
  isEnabled(node: GraphNode): boolean {
    const { handle } = this
    this.#requireNode(node, 'GraphExec.isEnabled')
    const out = scratch()
    check(cuGraphNodeGetEnabled(handle, node.handle, out), 'cuGraphNodeGetEnabled')
    return out.u32[0] !== 0
  }

  #requireNode(node: GraphNode, api: string): void {
    requireInstance(node, api, 'node', GraphNode)
    void node.handle
    const source = this.#source.deref()
    if (source === undefined || !node.graph._isWithin(source))
      throw wrongType(api, 'node', 'of the graph that it was made of', node)
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal, handle: this.#handle }
  }

  protected release(): void {
    forgetLeak(this)
    destroy(this.context, this.#handle, this.#resources)
  }
}

/** Destroys the graph. Launches in flight still complete, because the driver frees the graph afterwards. */
function destroy(context: Context, handle: CUgraphExec, resources: NodeResources): void {
  try {
    if (!context.disposed && !processIsEnding()) checkRelease(cuGraphExecDestroy(handle), 'cuGraphExecDestroy')
  } finally {
    resources.release()
  }
}

function describeNode(graph: Graph, handle: CUgraphNode): string {
  const node = locate(graph, handle)
  if (node === undefined) return `the node ${handle}`
  return `node ${node.graph.nodes.indexOf(node)} (${node.type})${node.graph === graph ? '' : ' of a part'}`
}

/** Returns the likely reason for the driver's plain "not supported". */
function hintFor(status: number, graph: Graph): string | undefined {
  if (status !== Status.notSupported || !hasNodes(graph, ['mem-alloc', 'mem-free', 'conditional'])) return undefined
  return 'a graph with nodes of memory or conditions has one executable graph at a time'
}

/** Returns the node with a handle, in the graph or its parts. */
function locate(graph: Graph, handle: CUgraphNode): GraphNode | undefined {
  for (const node of graph.nodes) {
    if (node._handle === handle) return node
    for (const part of graph._partsOf(node)) {
      const found = locate(part, handle)
      if (found !== undefined) return found
    }
  }
  return undefined
}

/** Whether the graph or a child graph has a node of one of these types. */
function hasNodes(graph: Graph, types: readonly GraphNodeType[]): boolean {
  return graph.nodes.some(
    (node) => types.includes(node.type) || (node.type === 'graph' && hasNodes(graph._childOf(node), types)),
  )
}
