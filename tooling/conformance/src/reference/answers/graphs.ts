import { cuGraphKernelNodeGetAttribute } from '@shoal/cuda-sys/driver'
import { type Device, DeviceBuffer, type LaunchConfig, type MemoryOperation, type Stream } from '@shoal/driver'
import {
  type CopyEnd,
  copyNode,
  emptyNode,
  eventRecordNode,
  eventWaitNode,
  fillNode,
  Graph,
  type GraphNode,
  hostNode,
  kernelNode,
  memoryOperationsNode,
  type NodeDescription,
  nodeParameters,
} from '@shoal/driver/graph'
import { attempt, hex, type Value, written } from '../answer.js'
import type { GraphCase, NodeStep, Place, StreamStep, WordInput } from '../cases.js'
import { kernelOf } from './kernelOf.js'
import { Named } from './named.js'

const bytesOfAttribute = 64
const firstAttribute = 1
const lastAttribute = 16
const window = 1
const namesEvent = [7, 12]
const dtypes = { 8: 'u8', 16: 'u16', 32: 'u32' } as const

type KernelStep = Extract<NodeStep, { readonly do: 'kernel' }>

class Build implements Disposable {
  readonly given: GraphCase
  readonly named: Named
  readonly bodies = new Map<bigint, readonly Graph[]>()
  readonly #streams: readonly Stream[]

  constructor(device: Device, given: GraphCase) {
    this.given = given
    this.named = new Named(device, given.memory)
    this.#streams = [0, 1].map(() => device.createStream({ nonBlocking: true }))
  }

  stream(index: number): Stream {
    return this.#streams[index] as Stream
  }

  [Symbol.dispose](): void {
    this.named[Symbol.dispose]()
    for (const stream of this.#streams) stream.dispose()
  }
}

function launchOf({ given, named }: Build, { kernel, args, grid, block, sharedMemory, attributes }: KernelStep) {
  const plainKernel = kernelOf(named.device, given.ptx, kernel)
  const config: LaunchConfig = {
    grid: grid as [number],
    block: block as [number],
    ...(sharedMemory === undefined ? {} : { sharedMemory }),
  }
  const [data, count, summand] = args as readonly [Place, number, number]
  return {
    kernel: attributes === undefined ? plainKernel : plainKernel.with(named.attributes(attributes)),
    config,
    args: [named.at(data, 1), count, summand] as const,
  }
}

const wordsOf = (named: Named, words: readonly WordInput[]): MemoryOperation[] =>
  words.map(({ memory, bits, value, ...rest }) => ({
    ...rest,
    memory: named.at(memory, bits / 8),
    value: bits === 64 ? BigInt(value) : value,
  }))

const fillOf = (named: Named, { to, bits, count }: Extract<NodeStep, { readonly do: 'fill' }>): DeviceBuffer<'u32'> =>
  named.at(to, (count * bits) / 8).reinterpret(dtypes[bits] as 'u32')

function description(build: Build, step: NodeStep): NodeDescription {
  const { named } = build
  switch (step.do) {
    case 'kernel': {
      const { kernel, config, args } = launchOf(build, step)
      return kernelNode(kernel, config, ...args)
    }
    case 'fill':
      return fillNode(fillOf(named, step), step.value)
    case 'copy':
      return copyNode(named.at(step.to, step.bytes), named.at(step.from, step.bytes))
    case 'host':
      return hostNode(() => {})
    case 'empty':
      return emptyNode()
    case 'record':
      return eventRecordNode(named.event(step.event))
    case 'wait':
      return eventWaitNode(named.event(step.event))
    case 'words':
      return memoryOperationsNode(wordsOf(named, step.operations))
    default:
      throw new Error(`no such node: ${step.do}`)
  }
}

function addSteps(build: Build, graph: Graph, steps: readonly NodeStep[]): void {
  const { named } = build
  const nodes: GraphNode[] = []
  for (const step of steps) {
    const dependencies = (step.after ?? []).map((index) => nodes[index] as GraphNode)
    if (step.do === 'allocate') {
      const { node, memory } = graph.allocate('u8', step.bytes, { dependencies })
      named.add(step.name, memory)
      nodes.push(node)
    } else if (step.do === 'free') {
      nodes.push(graph.free(named.buffer(step.name), { dependencies }))
    } else if (step.do === 'graph') {
      using child = Graph.create(named.device)
      addSteps(build, child, step.steps)
      nodes.push(graph.addGraph(child, { dependencies }))
    } else if (step.do === 'conditional') {
      const { type, value, bodies } = step
      const choice = {
        type,
        size: bodies.length,
        dependencies,
        ...(value === undefined ? {} : { defaultValue: value }),
      }
      const made = graph.addConditional(choice)
      build.bodies.set(made.node.handle, made.bodies)
      for (const [index, body] of bodies.entries()) addSteps(build, made.bodies[index] as Graph, body)
      nodes.push(made.node)
    } else {
      nodes.push(graph.add(description(build, step), { dependencies }))
    }
  }
}

/** Queues a step. Its result is not needed. */
function queueStep(build: Build, step: StreamStep): unknown {
  const { named } = build
  const stream = build.stream(step.stream ?? 0)
  switch (step.do) {
    case 'kernel': {
      const { kernel, config, args } = launchOf(build, step)
      return kernel.launch({ ...config, stream }, ...args)
    }
    case 'fill':
      return fillOf(named, step).fill(step.value, { stream })
    case 'copy':
      return named.at(step.to, step.bytes).copyFrom(named.at(step.from, step.bytes), { stream })
    case 'host':
      return stream.hostFunction(() => {})
    case 'words':
      return stream.memoryOperations(wordsOf(named, step.operations))
    case 'allocate':
      return named.add(step.name, DeviceBuffer.allocateOn(stream, 'u8', step.bytes))
    case 'free':
      return named.buffer(step.name).disposeOn(stream)
    case 'follow':
      return stream.waitEvent(build.stream(step.behind).record(named.event('order')))
  }
}

function readAttributes(node: GraphNode, named: Named): Value {
  const found: Record<string, Value> = {}
  for (let id = firstAttribute; id <= lastAttribute; id += 1)
    found[id] = attempt(() => {
      const bytes = written(bytesOfAttribute, (out) => cuGraphKernelNodeGetAttribute(node.handle, id as never, out))
      const view = new DataView(bytes.buffer)
      const pointer = view.getBigUint64(0, true)
      const isPointed = id === window || namesEvent.includes(id)
      if (isPointed) view.setBigUint64(0, 0n, true)
      // Padding bytes, whose content depends on the driver.
      if (id === window) view.setUint32(28, 0)
      return [hex(bytes), !isPointed ? null : id === window ? named.place(pointer) : named.eventName(pointer)]
    })
  return found
}

function readEnd(end: CopyEnd, named: Named): [Value, Value] {
  return [end.isArray ? end.handle !== 0n : named.place(end.handle), [end.x, end.y, end.z, end.pitch, end.rows]]
}

function readNode(node: GraphNode, build: Build): Value {
  const { named } = build
  const parameters = nodeParameters(node)
  switch (parameters.type) {
    case 'kernel': {
      const { name = '', grid, block, sharedMemory } = parameters
      return { name, grid, block, sharedMemory, attributes: readAttributes(node, named) }
    }
    case 'memcpy': {
      const [[from, fromPlace], [to, toPlace]] = [readEnd(parameters.source, named), readEnd(parameters.target, named)]
      return { from, to, fromPlace, toPlace, extent: parameters.extent }
    }
    case 'memset': {
      const { address, value, elementBytes, width, height, pitch } = parameters
      return { to: named.place(address), value, elementBytes, extent: [width, height, pitch] }
    }
    case 'graph':
      return { graph: read(parameters.graph, build) }
    case 'event-record':
    case 'wait-event':
      return { event: named.eventName(parameters.eventHandle) }
    case 'mem-alloc':
      return { memory: named.place(parameters.address), bytes: parameters.byteLength }
    case 'mem-free':
      return { memory: named.place(parameters.address) }
    case 'batch-mem-op':
      return { count: parameters.count }
    case 'conditional':
      return { bodies: (build.bodies.get(node.handle) ?? []).map((body) => read(body, build)) }
    default:
      return {}
  }
}

/**
 * The names of `CUgraphNodeType`, in the order of their codes. They are repeated here, so that a wrong name in the
 * package is found.
 */
const types = [
  'kernel',
  'memcpy',
  'memset',
  'host',
  'graph',
  'empty',
  'wait-event',
  'event-record',
  'ext-semas-signal',
  'ext-semas-wait',
  'mem-alloc',
  'mem-free',
  'batch-mem-op',
  'conditional',
]

function read(graph: Graph, build: Build): Value {
  const { nodes, edges } = graph
  const places = (list: readonly GraphNode[]): number[] => list.map((node) => nodes.indexOf(node)).sort((a, b) => a - b)
  return {
    nodes: nodes.map((node) => ({
      type: types.indexOf(node.type),
      dependencies: places(node.dependencies),
      dependents: places(node.dependents),
      ...(readNode(node, build) as object),
    })),
    edges: edges
      .map(({ from, to, fromPort, type }) => [
        nodes.indexOf(from),
        nodes.indexOf(to),
        fromPort,
        type === 'programmatic' ? 1 : 0,
      ])
      .sort((one, other) => one.map((value, at) => value - (other[at] as number)).find((order) => order !== 0) ?? 0),
  }
}

/** Returns the content of the case's memory after two launches. */
function run(graph: Graph, stream: Stream, { given, named }: Build): Value {
  const memory = Object.keys(given.memory).map((name) => [name, named.buffer(name)] as const)
  return attempt(() => {
    for (const [, buffer] of memory) buffer.fill(0, { stream })
    using exec = graph.instantiate()
    const { flags } = exec
    for (let turn = 0; turn < 2; turn += 1) exec.launch(stream)
    stream.synchronizeSync()
    return { flags, ...Object.fromEntries(memory.map(([name, buffer]) => [name, hex(buffer.toArraySync())])) }
  })
}

export function graphAnswer(device: Device, given: GraphCase): Value {
  using build = new Build(device, given)
  using graph = make(build)
  return {
    graph: read(graph, build),
    clone: attempt(() => {
      using clone = graph.clone()
      return read(clone, build)
    }),
    ...(given.notRun === true ? {} : { run: run(graph, build.stream(0), build) }),
  }
}

function make(build: Build): Graph {
  const { given, named } = build
  if (given.build === 'captured')
    return Graph.capture(
      build.stream(0),
      () => {
        for (const step of given.steps as readonly StreamStep[]) queueStep(build, step)
      },
      { mode: 'thread-local' },
    )
  const graph = Graph.create(named.device)
  try {
    addSteps(build, graph, given.steps as readonly NodeStep[])
    return graph
  } catch (error) {
    graph.dispose()
    throw error
  }
}
