import { cuGraphGetNodes } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { DisposedError, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { add, device, firstOf, one, second, stream, zeros } from './support/graphObjects.js'

const { childGraphNode, copyNode, emptyNode, fillNode, Graph, hostNode, kernelNode, nodeParameters } = await import(
  '@shoal/driver/graph'
)

/** Allocates a word, increments it, and copies it to `out`. */
function withMemory(value: number, out: import('@shoal/driver').DeviceBuffer<'u32'>) {
  const graph = Graph.create(device)
  const { node, memory } = graph.allocate('u32', 1)
  const zero = graph.add(copyNode(memory, nothing), { dependencies: [node] })
  const sum = graph.add(kernelNode(add, one, memory, value), { dependencies: [zero] })
  const copy = graph.add(copyNode(out, memory), { dependencies: [sum] })
  graph.free(memory, { dependencies: [copy] })
  return graph
}

const nothing = zeros()

const run = async (graph: InstanceType<typeof Graph>): Promise<void> => {
  using exec = graph.instantiate()
  exec.launch(stream)
  await stream.synchronize()
}

const refusal = (code: string) => expect.objectContaining({ code })

describe('a child graph that copies a graph', () => {
  test('is added like other nodes, and replaced by a graph of any shape', async () => {
    using sum = zeros()
    using inner = Graph.create(device)
    inner.add(kernelNode(add, one, sum, 1))
    using graph = Graph.create(device)
    const node = graph.add(childGraphNode(inner))
    expect(node.type).toBe('graph')
    inner.add(kernelNode(add, one, sum, 100))
    await run(graph)
    expect(firstOf(sum)).toBe(1)

    const before = nodeParameters(node) as { readonly graph: InstanceType<typeof Graph> }
    const [old] = before.graph.nodes
    node.update(childGraphNode(inner))
    await run(graph)
    expect(firstOf(sum)).toBe(102)
    const after = nodeParameters(node) as { readonly graph: InstanceType<typeof Graph> }
    expect(after.graph.nodes).toHaveLength(2)
    // The earlier graph ended, and its nodes with it.
    expect(() => before.graph.nodes).toThrow(DisposedError)
    expect(() => before.graph.add(emptyNode())).toThrow('its node was removed, or has another one')
    expect(() => old?.remove()).toThrow(DisposedError)
  })

  test('is replaced in an executable graph by a graph of the same shape', async () => {
    using sum = zeros()
    const [inner, like, unlike] = [1, 10, 100].map((value) => {
      const graph = Graph.create(device)
      graph.add(kernelNode(add, one, sum, value))
      return graph
    }) as [InstanceType<typeof Graph>, InstanceType<typeof Graph>, InstanceType<typeof Graph>]
    unlike.add(emptyNode())
    using graph = Graph.create(device)
    const node = graph.add(childGraphNode(inner))
    using exec = graph.instantiate()
    exec.updateNode(node, childGraphNode(like)).launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(10)
    expect(() => exec.updateNode(node, childGraphNode(unlike))).toThrow(
      refusal('CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE') as never,
    )
    exec.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(20)
    for (const each of [inner, like, unlike]) each.dispose()
  })

  test('keeps the resources of the original', async () => {
    using graph = Graph.create(device)
    {
      using sum = zeros()
      using inner = Graph.create(device)
      inner.add(kernelNode(add, one, sum, 1))
      const node = graph.add(emptyNode())
      graph.add(childGraphNode(inner), { dependencies: [node] })
    }
    expect(() => graph.instantiate()).toThrow(DisposedError)
  })

  test('always returns the same Graph object, which ends with the node', () => {
    using inner = Graph.create(device)
    const first = inner.add(emptyNode())
    using graph = Graph.create(device)
    const node = graph.add(childGraphNode(inner))
    const child = () => (nodeParameters(node) as { readonly graph: InstanceType<typeof Graph> }).graph
    const seen = child()
    expect(child()).toBe(seen)
    expect(seen.nodes[0]).not.toBe(first)
    // The inner graph ends only with its node.
    seen.dispose()
    expect(child()).toBe(seen)
    const again = child()
    const [own] = again.nodes
    expect(seen.disposed).toBe(false)
    node.remove()
    expect(seen.disposed).toBe(true)
    expect(() => again.nodes).toThrow(DisposedError)
    expect(() => again.keep(stream)).toThrow(DisposedError)
    expect(() => again.instantiate()).toThrow(DisposedError)
    expect(() => graph.addGraph(again, { move: true })).toThrow(DisposedError)
    expect(() => own?.handle).toThrow(DisposedError)
    expect(() => own?.dependents).toThrow(DisposedError)
    expect(() => again.capture(stream, () => undefined)).toThrow(DisposedError)

    const { node: conditional, bodies } = graph.addConditional({ type: 'if' })
    const inBody = bodies[0]?.add(emptyNode())
    conditional.remove()
    expect(() => bodies[0]?.add(emptyNode())).toThrow(DisposedError)
    expect(() => inBody?.remove()).toThrow(DisposedError)
  })
})

describe('a graph moved into another graph', () => {
  test('may allocate memory, and runs with it', async () => {
    using out = zeros()
    using sum = zeros()
    using graph = Graph.create(device)
    using inner = withMemory(7, out)
    expect(() => graph.addGraph(inner)).toThrow(refusal('CUDA_ERROR_NOT_SUPPORTED') as never)
    const node = graph.addGraph(inner, { move: true })
    graph.add(kernelNode(add, one, out, 1), { dependencies: [node] })
    // The inner graph can still grow as a part.
    inner.add(kernelNode(add, one, sum, 5))
    await run(graph)
    expect([firstOf(out), firstOf(sum)]).toEqual([8, 5])
    await run(graph)
    expect([firstOf(out), firstOf(sum)]).toEqual([8, 10])
    expect((nodeParameters(node) as { readonly graph: unknown }).graph).toBe(inner)
    expect(JSON.stringify(graph)).toContain('"type":"graph"')
  })

  test('belongs to the parent graph', async () => {
    let calls = 0
    using out = zeros()
    const graph = Graph.create(device)
    const inner = Graph.create(device)
    const host = inner.add(hostNode(() => (calls += 1)))
    using before = inner.instantiate()
    const node = graph.addGraph(inner, { move: true })
    using another = Graph.create(device)
    expect(() => inner.instantiate()).toThrow(/^Graph\.instantiate: the graph is part of another one/)
    expect(() => another.addGraph(inner, { move: true })).toThrow(
      /^Graph\.addGraph: graph must be a graph that is no part/,
    )
    expect(() => another.addGraph(inner)).toThrow(StatusError)
    expect(() => inner.allocate('u32', 4)).toThrow(refusal('CUDA_ERROR_NOT_SUPPORTED') as never)
    using exec = graph.instantiate()
    expect(() => exec.update(inner)).toThrow(/^GraphExec\.update: graph must be a graph that is no part/)
    // The inner graph's nodes are also nodes of the outer graph.
    const fill = inner.add(fillNode(out, 4))
    using whole = graph.instantiate()
    whole.updateNode(fill, fillNode(out, 9)).launch(stream)
    before.launch(stream)
    await stream.synchronize()
    expect(firstOf(out)).toBe(9)
    await expect.poll(() => calls).toBe(2)
    // Executable graphs made earlier keep working with their nodes.
    before
      .updateNode(
        host,
        hostNode(() => (calls += 10)),
      )
      .launch(stream)
    await expect.poll(() => calls).toBe(12)
    inner.dispose()
    inner.dispose()
    await run(graph)
    expect(firstOf(out)).toBe(4)
    expect(inner.nodes).toHaveLength(2)
    expect((nodeParameters(node) as { readonly graph: unknown }).graph).toBe(inner)
    graph.dispose()
    expect(inner.disposed).toBe(true)
    expect(() => fill.handle).toThrow(DisposedError)
    expect(() => inner.instantiate()).toThrow(DisposedError)
    expect(() => exec.update(inner)).toThrow(DisposedError)
  })

  test('ends with the parent graph or with its node', () => {
    const [graph, inner, innermost] = [0, 1, 2].map(() => Graph.create(device)) as [
      InstanceType<typeof Graph>,
      InstanceType<typeof Graph>,
      InstanceType<typeof Graph>,
    ]
    graph.addGraph(inner, { move: true })
    const node = inner.addGraph(innermost, { move: true })
    node.remove()
    expect(() => innermost.add(emptyNode())).toThrow(DisposedError)
    inner.add(emptyNode())
    graph.dispose()
    expect(() => inner.add(emptyNode())).toThrow(DisposedError)
    expect(() => inner.instantiate()).toThrow()
  })

  test('passes the resources of its nodes to the parent, including nodes added later', () => {
    for (const which of [0, 1] as const) {
      using graph = Graph.create(device)
      const parts = [Graph.create(device), Graph.create(device)] as const
      parts[0].addGraph(parts[1], { move: true })
      graph.addGraph(parts[0], { move: true })
      const sum = zeros()
      parts[which].add(fillNode(sum, 1))
      using exec = graph.instantiate()
      sum.dispose()
      expect(() => exec.launch(stream)).toThrow(DisposedError)
      expect(() => graph.instantiate()).toThrow(DisposedError)
    }
  })

  test('is replaced by a copy like other child graphs', () => {
    using graph = Graph.create(device)
    using other = Graph.create(device)
    const inner = Graph.create(device)
    const node = graph.addGraph(inner, { move: true })
    node.update(childGraphNode(other))
    expect(() => inner.add(emptyNode())).toThrow(DisposedError)
    expect(inner.disposed).toBe(true)
  })

  test('is a new graph to which a running capture does not add', () => {
    using graph = Graph.create(device)
    const inner = Graph.create(device)
    expect(() => graph.addGraph(graph, { move: true })).toThrow(/^Graph\.addGraph: graph must be another graph/)
    const node = graph.addGraph(inner, { move: true })
    expect(() => inner.addGraph(graph, { move: true })).toThrow(/^Graph\.addGraph: graph must be another graph/)
    using third = Graph.create(device)
    third.capture(stream, () => {
      expect(() => graph.addGraph(third, { move: true })).toThrow('a graph that no capture adds to')
    })
    inner.capture(stream, () => {
      expect(() => node.remove()).toThrow(/^GraphNode\.remove: a capture adds to the graph of this node/)
      expect(() => node.update(childGraphNode(third))).toThrow(/^GraphNode\.update: a capture adds/)
    })
    node.remove()
  })

  test('disposing a graph while a capture adds to its child graph takes effect after the capture', () => {
    const graph = Graph.create(device)
    const inner = Graph.create(device)
    using sum = zeros()
    graph.addGraph(inner, { move: true })
    const { handle } = graph
    const out = NativeMemory.allocate(8)
    inner.capture(stream, () => {
      graph.dispose()
      expect(cuGraphGetNodes(handle, null, out)).toBe(0)
      add.launch({ ...one, stream }, sum, 1)
    })
    expect(cuGraphGetNodes(handle, null, out)).toBe(1)
    expect(() => inner.nodes).toThrow(DisposedError)
  })

  test.each([
    [{ move: 1 }, /^Graph\.addGraph: move must be a boolean/],
    [{ moved: true }, /^Graph\.addGraph: .*moved/],
    [{ move: true, dependencies: [5] }, /^Graph\.addGraph: dependencies\[0\]/],
  ] as const)('%o is refused, and no graph is moved', (options, message) => {
    using graph = Graph.create(device)
    using inner = Graph.create(device)
    expect(() => graph.addGraph(inner, options as never)).toThrow(message)
    expect(graph.nodes).toHaveLength(0)
    inner.instantiate().dispose()
  })

  test('refuses everything except a live Graph', () => {
    using graph = Graph.create(device)
    const gone = Graph.create(device)
    const description = childGraphNode(gone)
    gone.dispose()
    for (const junk of [undefined, null, 5, {}, device, Object.create(null)]) {
      expect(() => childGraphNode(junk as never)).toThrow(/^childGraphNode: graph must be a Graph/)
    }
    expect(() => childGraphNode(gone)).toThrow(DisposedError)
    expect(() => graph.add(description)).toThrow(DisposedError)
    expect(() => graph.addGraph(gone, { move: true })).toThrow(DisposedError)
    expect(graph.nodes).toHaveLength(0)
    // The inner graph may be of another device.
    const far = Graph.create(second)
    graph.addGraph(far, { move: true })
    far.add(emptyNode())
    graph.instantiate().dispose()
    // Values that only look like a graph.
    for (const junk of [Object.create(Graph.prototype), new Proxy(graph, {})]) {
      expect(() => childGraphNode(junk)).toThrow(/^childGraphNode: graph must be a Graph/)
      expect(() => graph.addGraph(junk)).toThrow(/^Graph\.addGraph: graph must be a Graph/)
      using exec = graph.instantiate()
      expect(() => exec.update(junk)).toThrow(/^GraphExec\.update: graph must be a Graph/)
    }
  })

  test.each([{ move: true }, {}])(
    'its context lives until the parent graph and everything instantiated from it has ended: %o',
    (options) => {
      const { primaryContext } = second
      const far = Graph.create(second)
      far.add(emptyNode())
      const graph = Graph.create(device)
      graph.addGraph(far, options)
      far.dispose()
      second.dispose()
      const exec = graph.instantiate()
      graph.dispose()
      expect(primaryContext.disposed).toBe(false)
      exec.launch(stream)
      exec.dispose()
      expect(primaryContext.disposed).toBe(true)
    },
  )

  test('reports a mismatched node with its path in the child graph', () => {
    const [one, other] = [0, 1].map(() => Graph.create(device)) as [
      InstanceType<typeof Graph>,
      InstanceType<typeof Graph>,
    ]
    const [inner, unlike] = [0, 1].map(() => Graph.create(device)) as [
      InstanceType<typeof Graph>,
      InstanceType<typeof Graph>,
    ]
    using out = zeros()
    inner.add(emptyNode())
    const fill = unlike.add(fillNode(out, 1))
    one.addGraph(inner, { move: true })
    other.addGraph(unlike, { move: true })
    using exec = one.instantiate()
    const { result, node } = exec.update(other)
    expect(result).toBe('node-type-changed')
    expect(node).toBe(fill)
    expect(() => other.add(emptyNode(), { dependencies: [fill] })).toThrow(/a node of this graph/)
    for (const each of [one, other]) each.dispose()
  })

  test('a capture into a child graph survives a lookup of that graph', () => {
    using graph = Graph.create(device)
    const inner = Graph.create(device)
    const node = graph.addGraph(inner, { move: true })
    using sum = zeros()
    inner.capture(stream, () => {
      inner.dispose()
      expect((nodeParameters(node) as { readonly graph: unknown }).graph).toBe(inner)
      expect(() => node.remove()).toThrow(/^GraphNode\.remove: a capture adds/)
      sum.fill(1, { stream })
    })
    expect(inner.nodes).toHaveLength(1)
  })
})

describe('a graph with memory nodes', () => {
  test('has one executable graph at a time', async () => {
    using out = zeros()
    using graph = withMemory(5, out)
    using like = withMemory(6, out)
    {
      using exec = graph.instantiate()
      expect(() => graph.instantiate()).toThrow(/one executable graph at a time/)
      expect(() => Graph.create(device).addGraph(graph, { move: true })).toThrow(
        refusal('CUDA_ERROR_NOT_SUPPORTED') as never,
      )
      // Afterwards the executable graph has the other graph's parameters.
      expect(exec.update(like).result).toBe('success')
      expect(() => like.instantiate()).toThrow(refusal('CUDA_ERROR_NOT_SUPPORTED') as never)
      using own = graph.instantiate()
      expect(() => exec.update(graph)).toThrow(/one executable graph at a time/)
      exec.launch(stream)
      await stream.synchronize()
      expect(firstOf(out)).toBe(6)
      own.launch(stream)
      await stream.synchronize()
      expect(firstOf(out)).toBe(5)
    }
    await run(like)
    expect(firstOf(out)).toBe(6)
  })

  test('keeps its fill nodes at the memory they were created for', () => {
    const [graph, like] = [7, 8].map((value) => {
      const graph = Graph.create(device)
      const { node, memory } = graph.allocate('u32', 16)
      const part = graph.add(fillNode(memory.slice(8, 12), value), { dependencies: [node] })
      graph.free(memory, { dependencies: [part] })
      return graph
    }) as [InstanceType<typeof Graph>, InstanceType<typeof Graph>]
    using exec = graph.instantiate()
    expect(exec.update(graph)).toEqual({ result: 'success', node: undefined })
    expect(exec.update(like)).toEqual({ result: 'error', node: undefined })
    for (const each of [graph, like]) each.dispose()
  })

  test('can only grow', () => {
    using out = zeros()
    using graph = withMemory(5, out)
    const first = graph.add(emptyNode())
    const last = graph.add(emptyNode(), { dependencies: [first] })
    expect(() => graph.removeDependency(first, last)).toThrow(refusal('CUDA_ERROR_NOT_SUPPORTED') as never)
    expect(() => last.remove()).toThrow(refusal('CUDA_ERROR_NOT_SUPPORTED') as never)
    expect(last.dependencies).toEqual([first])
    // If a refused node cannot be removed again, the error is still the refusal.
    using plain = Graph.create(device)
    const clusters = kernelNode(add.with({ clusterDimension: 3 }), { grid: 8, block: 1 }, out, 1)
    for (const [each, before] of [
      [graph, graph.nodes.length + 1],
      [plain, 0],
    ] as const) {
      expect(() => each.add(clusters)).toThrow(refusal('CUDA_ERROR_INVALID_CLUSTER_SIZE') as never)
      expect(each.nodes).toHaveLength(before)
    }
  })
})

test('launching a graph into a capture that refuses it invalidates the capture', () => {
  using graph = Graph.create(device)
  graph.add(emptyNode())
  using exec = graph.instantiate()
  using capturing = device.createStream({ nonBlocking: true })
  const refused = refusal('CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED')
  expect(() => Graph.capture(capturing, () => exec.launch(capturing))).toThrow(refused as never)
})
