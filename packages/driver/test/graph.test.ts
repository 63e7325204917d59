import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DisposedError, defineStruct, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { add, device, firstOf, one, stream, zeros } from './support/graphObjects.js'

const { DeviceBuffer, Module } = await import('@shoal/driver')
const { copyNode, emptyNode, fillNode, Graph, graphMemoryUsage, hostNode, kernelNode, trimGraphMemory } = await import(
  '@shoal/driver/graph'
)

describe('memory allocated by a graph', () => {
  test('is usable between its nodes, and counted', async () => {
    using result = zeros()
    trimGraphMemory(device)
    const before = graphMemoryUsage(device)
    using graph = Graph.create(device)
    const { node, memory } = graph.allocate('u32', 1000)
    const fill = graph.add(fillNode(memory, 6), { dependencies: [node] })
    const run = graph.add(kernelNode(add, one, memory, 1), { dependencies: [fill] })
    const copy = graph.add(copyNode(result, memory.slice(0, 1)), { dependencies: [run] })
    graph.free(memory, { dependencies: [copy] })
    expect(() => graph.clone()).toThrow(StatusError)
    expect(() => node.remove()).toThrow(StatusError)
    using step = graph.instantiate()
    for (let turn = 0; turn < 3; turn += 1) step.launch(stream)
    await stream.synchronize()
    expect(firstOf(result)).toBe(7)
    const { used, usedHigh } = graphMemoryUsage(device)
    expect([used - before.used, usedHigh]).toEqual([4000, expect.toSatisfy((high) => high >= 4000)])
    trimGraphMemory(device)
    expect(graphMemoryUsage(device)).toMatchObject({ used: before.used, reserved: before.used })
    step.launch(stream)
    await stream.synchronize()
    expect([firstOf(result), graphMemoryUsage(device).used - before.used]).toEqual([7, 4000])
  })

  test.each(['autoFreeOnLaunch', 'useNodePriority'] as const)(
    'can be instantiated with %s as the only flag',
    (flag) => {
      using graph = Graph.create(device)
      graph.allocate('u8', 64)
      const flags = { autoFreeOnLaunch: false, deviceLaunch: false, useNodePriority: false, [flag]: true }
      using exec = graph.instantiate({ [flag]: true })
      expect(exec.flags).toEqual(flags)
    },
  )

  test('without a free node is refused at the next launch, or freed by it', async () => {
    using graph = Graph.create(device)
    graph.allocate('u8', 64)
    using strict = graph.instantiate()
    strict.launch(stream)
    expect(() => strict.launch(stream)).toThrow(StatusError)
    strict.dispose()
    using lenient = graph.instantiate({ autoFreeOnLaunch: true })
    expect(lenient.flags).toEqual({ autoFreeOnLaunch: true, deviceLaunch: false, useNodePriority: false })
    lenient.launch(stream)
    lenient.launch(stream)
    await stream.synchronize()
  })

  test('results from a captured allocation', async () => {
    using result = zeros(2)
    using graph = Graph.capture(stream, () => {
      using memory = DeviceBuffer.allocateOn(stream, 'u32', 2)
      memory.fill(3, { stream })
      result.copyFrom(memory, { stream })
    })
    expect(graph.nodes.map(({ type }) => type)).toEqual(['mem-alloc', 'memset', 'memcpy', 'mem-free'])
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect([...result.toArraySync()]).toEqual([3, 3])
  })
})

test('a cooperative kernel can be a graph node, also in the body of a conditional node, on another thread', async () => {
  using sum = zeros()
  using graph = Graph.create(device)
  const { bodies } = graph.addConditional({ type: 'if', defaultValue: 1 })
  for (const to of [graph, bodies[0] as InstanceType<typeof Graph>]) {
    to.add(kernelNode(add.with({ cooperative: true }), { grid: 2, block: 4 }, sum, 5))
  }
  using exec = graph.instantiate()
  exec.launch(stream)
  await stream.synchronize()
  expect(firstOf(sum)).toBe(80)
})

describe('a graph for device launches', () => {
  test('has no memory to free, and names unsupported nodes', () => {
    using graph = Graph.create(device)
    graph.add(kernelNode(add, one, zeros(), 1))
    expect(() => graph.instantiate({ deviceLaunch: true, autoFreeOnLaunch: true })).toThrow(
      new TypeError('Graph.instantiate: autoFreeOnLaunch and deviceLaunch cannot be combined'),
    )
    using exec = graph.instantiate({ deviceLaunch: true, useNodePriority: true, autoFreeOnLaunch: false })
    expect(exec.flags.deviceLaunch).toBe(true)
    graph.add(hostNode(() => {}))
    expect(() => graph.instantiate({ deviceLaunch: true })).toThrow(
      /CUDA_ERROR_INVALID_VALUE.*\n.*an operation of a node is not supported, at node 1 \(host\)/,
    )
    using nothing = Graph.create(device)
    expect(() => nothing.instantiate({ deviceLaunch: true })).toThrow(StatusError)
  })

  test('is kept alive by the graph that keeps it', () => {
    using graph = Graph.create(device)
    graph.add(kernelNode(add, one, zeros(), 1))
    using exec = graph.instantiate({ deviceLaunch: true })
    using outer = Graph.create(device)
    outer.add(emptyNode())
    using launcher = outer.keep(exec).instantiate()
    launcher.launch(stream)
    exec.dispose()
    expect(() => launcher.launch(stream)).toThrow(DisposedError)
  })

  test('is kept together with the resources of its nodes', () => {
    const memory = zeros()
    using graph = Graph.create(device)
    graph.add(kernelNode(add, one, memory, 1))
    using exec = graph.instantiate({ deviceLaunch: true })
    using outer = Graph.create(device)
    outer.add(emptyNode())
    using launcher = outer.keep(exec).instantiate()
    launcher.launch(stream)
    memory.dispose()
    expect(() => launcher.launch(stream)).toThrow(DisposedError)
    expect(() => outer.keep(exec)).toThrow(DisposedError)
  })
})

describe('a getter in a node description', () => {
  const Value = defineStruct('Value', { a: 'u64' })
  const kernel = Module.loadSync(
    device,
    '.version 6.4\n.target sm_52\n.address_size 64\n.visible .entry one(.param .align 8 .b8 value[8]) { ret; }\n',
  ).kernel('one', [Value])
  const run = { grid: 1, block: 1 }
  /** A description whose getter calls `act` when it is added. */
  const thatDoes = (act: () => void) => {
    let isAdded = false
    const description = kernelNode(kernel, run, {
      get a() {
        if (isAdded) act()
        return 1n
      },
    })
    isAdded = true
    return description
  }

  test('that disposes the graph makes add() throw before the driver call', () => {
    const graph = Graph.create(device)
    const description = thatDoes(() => graph.dispose())
    expect(() => graph.add(description)).toThrow(expect.objectContaining({ name: 'DisposedError', object: 'Graph' }))
  })

  test('that removes a dependency makes add() throw', () => {
    using graph = Graph.create(device)
    const before = graph.add(emptyNode())
    let isThere = true
    const description = thatDoes(() => {
      if (isThere) before.remove()
      isThere = false
    })
    expect(() => graph.add(description, { dependencies: [before] })).toThrow(/GraphNode \(it was removed\)/)
    expect(graph.nodes).toEqual([])
  })
})

test('removed nodes are no longer found', () => {
  using graph = Graph.create(device)
  const nodes = [1, 2, 3].map(() => graph.add(emptyNode()))
  nodes[1]?.remove()
  expect(graph.nodes).toEqual([nodes[0], nodes[2]])
  nodes[0]?.remove()
  const added = graph.add(emptyNode())
  expect(graph.nodes[1]).toBe(added)
  expect(graph.nodes[0]).toBe(nodes[2])
})

test('a graph can be exported for Graphviz', () => {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-graph-'))
  try {
    using sum = zeros()
    using graph = Graph.create(device)
    graph.add(fillNode(sum, 1), { dependencies: [graph.add(emptyNode())] })
    const path = join(folder, 'graph.dot')
    graph.writeDot(path)
    expect(readFileSync(path, 'utf8')).toMatch(/^digraph[\s\S]*->[\s\S]*\}\n$/)
    expect(() => graph.writeDot(join(folder, 'none', 'graph.dot'))).toThrow(StatusError)
    expect(() => graph.writeDot('a\0b')).toThrow(TypeError)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('an edge describes its dependency, and is removed in the form it was added', () => {
  using sum = zeros()
  using graph = Graph.create(device)
  const [first, last] = [1, 2].map((value) => graph.add(kernelNode(add, one, sum, value))) as [
    import('@shoal/driver/graph').GraphNode,
    import('@shoal/driver/graph').GraphNode,
  ]
  for (const [data, edge] of [
    [{}, { fromPort: 0, type: 'default' }],
    [
      { fromPort: 1, type: 'programmatic' },
      { fromPort: 1, type: 'programmatic' },
    ],
    [{ fromPort: 255 }, { fromPort: 255, type: 'default' }],
    [
      { fromPort: 0, type: 'programmatic' },
      { fromPort: 0, type: 'programmatic' },
    ],
    [{ type: 'default' }, { fromPort: 0, type: 'default' }],
  ] as const) {
    graph.addDependency(first, last, data)
    expect(graph.edges).toEqual([{ from: first, to: last, ...edge }])
    graph.removeDependency(first, last, data)
    expect(graph.edges).toEqual([])
  }
  for (const [data, message] of [
    [{ fromPort: 256 }, 'fromPort must be an integer from 0 to 255, not 256'],
    [{ fromPort: -1 }, 'fromPort must be an integer from 0 to 255, not -1'],
    [{ type: 'other' as 'default' }, "type must be 'default' or 'programmatic', not 'other'"],
  ] as const) {
    expect(() => graph.addDependency(first, last, data)).toThrow(`Graph.addDependency: ${message}`)
    expect(() => graph.removeDependency(first, last, data)).toThrow(`Graph.removeDependency: ${message}`)
  }
})
