import assert from 'node:assert/strict'
import { DeviceBuffer, DisposedError, driverVersion, StatusError } from '@shoal/driver'
import { childGraphNode, copyNode, emptyNode, fillNode, Graph, hostNode, nodeParameters } from '@shoal/driver/graph'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

type Words = DeviceBuffer<'u32'>

const words = (t: CaseContext, value = 0): Words => t.own(DeviceBuffer.from(t.device, new Uint32Array(129).fill(value)))

/** Builds a graph that allocates words, fills them with `value`, copies them to `out`, and frees them. */
function withMemory(t: CaseContext, value: number, out: Words): Graph {
  const graph = Graph.create(t.device)
  const { node, memory } = graph.allocate('u32', out.length)
  const first = graph.add(copyNode(memory, words(t, value)), { dependencies: [node] })
  const second = graph.add(copyNode(out, memory), { dependencies: [first] })
  graph.free(memory, { dependencies: [second] })
  return graph
}

async function expectRun(t: CaseContext, graph: Graph, out: Words, value: number, what: string): Promise<void> {
  const stream = t.own(t.device.createStream({ nonBlocking: true }))
  const exec = graph.instantiate()
  exec.launch(stream)
  await stream.synchronize()
  exec.dispose()
  assertSameBits(await out.toArray(), new Uint32Array(out.length).fill(value), what)
}

const refusedWith = (code: string) => (error: unknown) => error instanceof StatusError && error.code === code

function requireMoves(t: CaseContext): void {
  const version = driverVersion()
  if (version.value < 12090) t.skip(`a driver for CUDA ${version} does not move graphs`)
}

const replaced: ConformanceCase = {
  name: 'a child graph is replaced, in its graph by one of any shape, and in an executable graph by one of its shape',
  async run(t) {
    const out = words(t)
    const [one, like, unlike] = [1, 2, 3].map((value) => {
      const graph = t.own(Graph.create(t.device))
      graph.add(fillNode(out, value))
      return graph
    }) as [Graph, Graph, Graph]
    unlike.add(emptyNode())
    const graph = t.own(Graph.create(t.device))
    const node = graph.add(childGraphNode(one))
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const exec = t.own(graph.instantiate())
    exec.updateNode(node, childGraphNode(like)).launch(stream)
    await stream.synchronize()
    assertSameBits(await out.toArray(), new Uint32Array(out.length).fill(2), 'updated')
    assert.throws(
      () => exec.updateNode(node, childGraphNode(unlike)),
      refusedWith('CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE'),
    )
    const before = nodeParameters(node) as { readonly graph: Graph }
    assert.equal(before.graph.nodes.length, 1)
    node.update(childGraphNode(unlike))
    await expectRun(t, graph, out, 3, 'replaced')
    assert.throws(() => before.graph.nodes, DisposedError)
    assert.equal((nodeParameters(node) as { readonly graph: Graph }).graph.nodes.length, 2)
  },
}

const moved: ConformanceCase = {
  name: 'a graph that is moved into another one may have memory, and is a part of that from then on',
  async run(t) {
    requireMoves(t)
    const [out, other] = [words(t), words(t)]
    let calls = 0
    const graph = t.own(Graph.create(t.device))
    const inner = withMemory(t, 7, out)
    inner.add(hostNode(() => (calls += 1)))
    assert.throws(() => graph.addGraph(inner), refusedWith('CUDA_ERROR_NOT_SUPPORTED'))
    const node = graph.addGraph(inner, { move: true })
    assert.equal((nodeParameters(node) as { readonly graph: Graph }).graph, inner)
    assert.throws(() => inner.allocate('u32', 4), refusedWith('CUDA_ERROR_NOT_SUPPORTED'))
    assert.throws(() => inner.instantiate(), TypeError)
    assert.throws(() => node.remove(), refusedWith('CUDA_ERROR_NOT_SUPPORTED'))
    const fill = inner.add(fillNode(other, 5))
    inner.dispose()
    await expectRun(t, graph, out, 7, 'moved')
    assertSameBits(await other.toArray(), new Uint32Array(other.length).fill(5), 'what was added behind')
    await expectRun(t, graph, out, 7, 'once more')
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(calls, 2)
    graph.dispose()
    assert.throws(() => fill.handle, DisposedError)
  },
}

const ends: ConformanceCase = {
  name: 'a graph that was moved ends with its node, and with the graph around it',
  run(t) {
    requireMoves(t)
    const [graph, inner, innermost] = [0, 1, 2].map(() => Graph.create(t.device)) as [Graph, Graph, Graph]
    graph.addGraph(inner, { move: true })
    const node = inner.addGraph(innermost, { move: true })
    const first = innermost.add(emptyNode())
    innermost.removeDependency(first, innermost.add(emptyNode(), { dependencies: [first] }))
    node.remove()
    assert.throws(() => innermost.add(emptyNode()), DisposedError)
    assert.throws(() => first.remove(), DisposedError)
    inner.add(emptyNode())
    graph.dispose()
    assert.throws(() => inner.add(emptyNode()), DisposedError)
  },
}

const single: ConformanceCase = {
  name: 'a graph with memory only grows, and has one executable graph at a time',
  async run(t) {
    const out = words(t)
    const graph = t.own(withMemory(t, 5, out))
    const like = t.own(withMemory(t, 6, out))
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const exec = graph.instantiate()
    assert.throws(() => graph.instantiate(), refusedWith('CUDA_ERROR_NOT_SUPPORTED'))
    assert.equal(exec.update(like).result, 'success')
    assert.throws(() => like.instantiate(), refusedWith('CUDA_ERROR_NOT_SUPPORTED'))
    const own = graph.instantiate()
    assert.throws(() => exec.update(graph), refusedWith('CUDA_ERROR_NOT_SUPPORTED'))
    exec.launch(stream)
    await stream.synchronize()
    assertSameBits(await out.toArray(), new Uint32Array(out.length).fill(6), 'updated')
    own.launch(stream)
    await stream.synchronize()
    assertSameBits(await out.toArray(), new Uint32Array(out.length).fill(5), 'its own')
    // An update cannot move a fill to other allocated memory.
    const [one, other] = [7, 8].map((value) => {
      const filled = t.own(Graph.create(t.device))
      const { node, memory } = filled.allocate('u32', 16)
      filled.free(memory, { dependencies: [filled.add(fillNode(memory, value), { dependencies: [node] })] })
      return filled
    }) as [Graph, Graph]
    const filling = t.own(one.instantiate())
    assert.equal(filling.update(one).result, 'success')
    const { result, node } = filling.update(other)
    assert.deepEqual([result, node], ['error', undefined])
    exec.dispose()
    own.dispose()
    const first = graph.add(emptyNode())
    const last = graph.add(emptyNode(), { dependencies: [first] })
    assert.throws(() => graph.removeDependency(first, last), refusedWith('CUDA_ERROR_NOT_SUPPORTED'))
    assert.throws(() => last.remove(), refusedWith('CUDA_ERROR_NOT_SUPPORTED'))
    await expectRun(t, like, out, 6, 'after the first ended')
  },
}

const notCaptured: ConformanceCase = {
  name: 'a launch of a graph cannot be captured',
  async run(t) {
    const out = words(t)
    const graph = t.own(Graph.create(t.device))
    graph.add(fillNode(out, 4))
    const exec = t.own(graph.instantiate())
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const refused = refusedWith('CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED')
    assert.throws(() => Graph.capture(stream, () => exec.launch(stream)), refused)
    await expectRun(t, graph, out, 4, 'launched')
  },
}

export const childGraphSuite: Suite = {
  name: 'driver: child graphs',
  cases: [replaced, moved, ends, single, notCaptured],
}
