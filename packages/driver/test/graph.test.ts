import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { CUDA_KERNEL_NODE_PARAMS_v3, CUgraphNodeParams } from '@shoal/cuda-sys/driver'
import { DisposedError, StatusError } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, Event, Module, PinnedBuffer } = await import('@shoal/driver')
const {
  captureStatus,
  copyNode,
  emptyNode,
  eventRecordNode,
  eventWaitNode,
  fillNode,
  Graph,
  graphMemoryUsage,
  hostNode,
  kernelNode,
  kernelOffsets,
  memoryOperationsNode,
  trimGraphMemory,
} = await import('@shoal/driver/graph')

const code = `
.version 8.5
.target sm_90
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry add(.param .u64 at, .param .u32 value) {
  .reg .b64 %p; .reg .b32 %n;
  ld.param.u64 %p, [at];
  ld.param.u32 %n, [value];
  red.global.add.u32 [%p], %n;
  ret;
}
.visible .entry countDown(.param .u64 handle, .param .u64 left) {
  .reg .b64 %h, %p; .reg .b32 %n, %c; .reg .pred %more;
  ld.param.u64 %h, [handle];
  ld.param.u64 %p, [left];
  ld.global.u32 %n, [%p];
  sub.u32 %n, %n, 1;
  st.global.u32 [%p], %n;
  setp.ne.u32 %more, %n, 0;
  selp.u32 %c, 1, 0, %more;
  { .param .b64 a; .param .b32 b;
    st.param.b64 [a], %h; st.param.b32 [b], %c;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}
.visible .entry choose(.param .u64 handle, .param .u32 value) {
  .reg .b64 %h; .reg .b32 %c;
  ld.param.u64 %h, [handle];
  ld.param.u32 %c, [value];
  { .param .b64 a; .param .b32 b;
    st.param.b64 [a], %h; st.param.b32 [b], %c;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}
`

const device = Device.get(0)
const second = Device.get(1)
const module = Module.loadSync(device, code)
const add = module.kernel('add', ['ptr', 'u32'])
const countDown = module.kernel('countDown', ['u64', 'ptr'])
const choose = module.kernel('choose', ['u64', 'u32'])
const one = { grid: 1, block: 1 } as const
let stream: import('@shoal/driver').Stream
let other: import('@shoal/driver').Stream
beforeAll(() => {
  stream = device.createStream({ nonBlocking: true })
  other = device.createStream({ nonBlocking: true })
})
afterAll(() => {
  for (const each of [stream, other, module]) each.dispose()
})

const zeros = (length = 1) => DeviceBuffer.zeros(device, 'u32', length)
const firstOf = (buffer: import('@shoal/driver').DeviceBuffer<'u32'>) => buffer.toArraySync()[0]

describe('Graph.capture', () => {
  test('runs nothing now, and all of it at each launch, on any stream', async () => {
    using sum = zeros()
    using graph = Graph.capture(stream, () => {
      expect(captureStatus(stream)).toBe('active')
      add.launch({ ...one, stream }, sum, 2)
      add.launch({ ...one, stream }, sum, 3)
    })
    expect([captureStatus(stream), firstOf(sum)]).toEqual(['none', 0])
    using step = graph.instantiate()
    for (let turn = 0; turn < 10; turn += 1) step.launch(turn % 2 === 0 ? stream : other)
    await Promise.all([stream.synchronize(), other.synchronize()])
    expect(firstOf(sum)).toBe(50)
    step.launch()
    device.primaryContext.synchronizeSync()
    expect(firstOf(sum)).toBe(55)
  })

  test('takes in streams that wait for an event of it, when they are waited for again', async () => {
    using sums = zeros(2)
    const [first, last] = [sums.slice(0, 1), sums.slice(1, 2)]
    using graph = Graph.capture(stream, () => {
      add.launch({ ...one, stream }, first, 1)
      other.waitEvent(stream.record())
      add.launch({ ...one, stream: other }, last, 5)
      add.launch({ ...one, stream }, first, 1)
      stream.waitEvent(other.record())
    })
    expect(graph.nodes.map(({ type }) => type)).toEqual(['kernel', 'kernel', 'kernel'])
    const [root, side, main] = graph.nodes
    expect(graph.rootNodes).toEqual([root])
    expect(root?.dependents).toEqual([side, main])
    expect([side?.dependencies, main?.dependencies]).toEqual([[root], [root]])
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect(sums.toArraySync()).toEqual(Uint32Array.of(2, 5))
  })

  test('records external events and waits for them by nodes of its own', async () => {
    using sum = zeros()
    using before = device.createEvent()
    using after = device.createEvent()
    using graph = Graph.capture(stream, () => {
      stream.waitEvent(before, { external: true })
      add.launch({ ...one, stream }, sum, 2)
      expect(stream.record(after, { external: true })).toBe(after)
    })
    expect(graph.nodes.map(({ type }) => type)).toEqual(['wait-event', 'kernel', 'event-record'])
    using step = graph.instantiate()
    add.launch({ ...one, stream: other }, sum, 1)
    other.record(before)
    step.launch(stream)
    await Promise.all([after.synchronize(), stream.synchronize()])
    expect(firstOf(sum)).toBe(3)
  })

  test('copies page-locked memory at each launch, and refuses ordinary arrays', async () => {
    using memory = zeros(4)
    using input = PinnedBuffer.allocate(device, 'u32', 4)
    using output = PinnedBuffer.allocate(device, 'u32', 4)
    using graph = Graph.capture(stream, () => {
      memory.copyFrom(input, { stream })
      add.launch({ ...one, stream }, memory, 1)
      void memory.copyTo(output, { stream })
    })
    using step = graph.instantiate()
    for (const turn of [7, 9]) {
      input.array.fill(turn)
      step.launch(stream)
      await stream.synchronize()
      expect([...output.array]).toEqual([turn + 1, turn, turn, turn])
    }
    expect(() => Graph.capture(stream, () => memory.copyFrom(new Uint32Array(4), { stream }))).toThrow(
      'DeviceBuffer.copyFrom: an ordinary array cannot be captured into a graph',
    )
    expect(captureStatus(stream)).toBe('none')
  })

  test('ends also when the function throws or is asynchronous, with its error', () => {
    class Own extends Error {}
    expect(() =>
      Graph.capture(stream, () => {
        throw new Own()
      }),
    ).toThrow(Own)
    expect(() => Graph.capture(stream, (async () => {}) as never)).toThrow(
      'Graph.capture: fn must be a synchronous function, not one that gives a promise',
    )
    expect(captureStatus(stream)).toBe('none')
  })

  test('ends although the function disposes of the stream, which is gone afterwards', async () => {
    using sum = zeros()
    const own = device.createStream({ nonBlocking: true })
    using graph = Graph.capture(own, () => {
      add.launch({ ...one, stream: own }, sum, 3)
      own.dispose()
    })
    expect(own.disposed).toBe(true)
    using exec = graph.instantiate()
    exec.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(3)
  })

  test('goes on when another stream is disposed of meanwhile, whose work still ends', async () => {
    using sum = zeros()
    using written = zeros()
    const another = device.createStream({ nonBlocking: true })
    using graph = Graph.capture(stream, () => {
      add.launch({ ...one, stream: another }, written, 5)
      another.dispose()
      add.launch({ ...one, stream }, sum, 3)
    })
    expect(graph.nodes).toHaveLength(1)
    await device.primaryContext.synchronize()
    expect([firstOf(sum), firstOf(written)]).toEqual([0, 5])
  })

  test('comes to nothing after a call that it forbids, and says so', () => {
    const forbidden = () => Graph.capture(stream, () => stream.synchronizeSync())
    expect(forbidden).toThrow(expect.objectContaining({ code: 'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED' }))
    const swallowed = () =>
      Graph.capture(stream, () => {
        expect(() => stream.query()).toThrow(StatusError)
        expect(captureStatus(stream)).toBe('invalidated')
      })
    expect(swallowed).toThrow(expect.objectContaining({ code: 'CUDA_ERROR_STREAM_CAPTURE_INVALIDATED' }))
    const allocated = () => Graph.capture(stream, () => DeviceBuffer.allocate(device, 'u32', 8).dispose())
    expect(allocated).toThrow(expect.objectContaining({ code: 'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED' }))
    const relaxed = Graph.capture(stream, () => DeviceBuffer.allocate(device, 'u32', 8).dispose(), { mode: 'relaxed' })
    relaxed.dispose()
    const unjoined = () =>
      Graph.capture(stream, () => {
        other.waitEvent(stream.record())
        zerosOn(other)
      })
    expect(unjoined).toThrow(expect.objectContaining({ code: 'CUDA_ERROR_STREAM_CAPTURE_UNJOINED' }))
    expect([captureStatus(stream), captureStatus(other)]).toEqual(['none', 'none'])
  })

  test('adds to a graph that is there, behind nodes of it', async () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const set = graph.add(fillNode(sum, 40))
    expect(graph.capture(stream, () => add.launch({ ...one, stream }, sum, 2), { dependencies: [set] })).toBe(graph)
    expect(graph.edges).toEqual([{ from: set, to: graph.nodes[1], fromPort: 0, type: 'default' }])
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(42)
  })

  test('into a graph that is disposed of meanwhile ends, and then the graph', () => {
    using sum = zeros()
    const graph = Graph.create(device)
    graph.capture(stream, () => {
      sum.fill(1, { stream })
      graph.dispose()
      sum.fill(2, { stream })
    })
    expect([captureStatus(stream), graph.disposed]).toEqual(['none', true])
    expect(() => graph.nodes).toThrow(DisposedError)
  })

  test('refuses what is no stream, function or option', () => {
    expect(() => Graph.capture(1 as never, () => {})).toThrow('Graph.capture: stream must be a Stream, not 1')
    expect(() => Graph.capture(stream, 1 as never)).toThrow('Graph.capture: fn must be a function')
    expect(() => Graph.capture(stream, () => {}, { mode: 'strict' as never })).toThrow('Graph.capture: mode must be')
    expect(() => Graph.capture(stream, () => {}, { modes: 1 } as never)).toThrow('modes')
    using gone = device.createStream()
    gone.dispose()
    expect(() => Graph.capture(gone, () => {})).toThrow(DisposedError)
  })

  function zerosOn(on: import('@shoal/driver').Stream): void {
    using memory = DeviceBuffer.allocateOn(on, 'u32', 4)
    memory.fill(0, { stream: on })
  }
})

describe('nodes', () => {
  test('copies, fills, kernels and functions run in the order of their edges', async () => {
    using from = DeviceBuffer.from(device, Uint32Array.of(1, 2, 3))
    using to = zeros(3)
    using graph = Graph.create(device)
    let calls = 0
    const clear = graph.add(fillNode(to, 9))
    const copy = graph.add(copyNode(to, from), { dependencies: [clear] })
    const run = graph.add(kernelNode(add, one, to, 10), { dependencies: [copy] })
    const join = graph.add(emptyNode(), { dependencies: [clear, run] })
    const call = graph.add(
      hostNode(() => {
        calls += 1
      }),
      { dependencies: [join] },
    )
    expect(graph.nodes).toEqual([clear, copy, run, join, call])
    expect(graph.toJSON()).toEqual({
      nodes: ['memset', 'memcpy', 'kernel', 'empty', 'host'].map((type, id) => ({ id, type })),
      edges: [
        [0, 1],
        [1, 2],
        [0, 3],
        [2, 3],
        [3, 4],
      ].map(([start, end]) => ({ from: start, to: end, fromPort: 0, type: 'default' })),
    })
    using step = graph.instantiate()
    step.launch(stream)
    step.launch(stream)
    await stream.synchronize()
    await stream.hostFunction(() => {})
    expect([...to.toArraySync(), calls]).toEqual([11, 2, 3, 2])
  })

  test('a kernel has the arguments it was given, also where reading one of them adds other nodes', async () => {
    using sum = zeros()
    using aside = zeros()
    using graph = Graph.create(device)
    const memoryProtocol = Symbol.for('cuda.memory')
    let added = 0
    let isAdding = false
    const memory = {
      get [memoryProtocol]() {
        if (!isAdding) {
          isAdding = true
          graph.add(kernelNode(add, one, aside, 100))
          graph.add(emptyNode())
          added += 1
          isAdding = false
        }
        return (sum as never as { [memoryProtocol]: object })[memoryProtocol]
      },
    }
    graph.add(kernelNode(add, { grid: 3, block: 1 }, memory as never, 1))
    using step = graph.instantiate()
    const instantiated = added
    step.launch(stream)
    await stream.synchronize()
    expect(instantiated).toBeGreaterThan(1)
    expect([firstOf(sum), firstOf(aside)]).toEqual([3, instantiated * 100])
  })

  test('between devices', async () => {
    using from = DeviceBuffer.from(device, Uint32Array.of(4, 5))
    using far = DeviceBuffer.zeros(second, 'u32', 2)
    device.primaryContext.enablePeerAccess(second)
    using graph = Graph.create(device)
    const copy = graph.add(copyNode(far, from))
    graph.add(fillNode(far.slice(0, 1), 7), { dependencies: [copy] })
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect([...far.toArraySync()]).toEqual([7, 5])
    device.primaryContext.disablePeerAccess(second)
  })

  test('fills of every width, where one pattern does', async () => {
    const cases = [
      ['u8', 200],
      ['i16', -2],
      ['f32', 1.5],
      ['f64', 0],
      ['u64', 0x0000_0001_0000_0001n],
    ] as const
    for (const [dtype, value] of cases) {
      using buffer = DeviceBuffer.allocate(device, dtype, 5)
      using graph = Graph.create(device)
      graph.add(fillNode(buffer as never, value as never))
      using step = graph.instantiate()
      step.launch(stream)
      await stream.synchronize()
      expect([...(buffer.toArraySync() as ArrayLike<unknown> & Iterable<unknown>)].map(Number)).toEqual(
        new Array(5).fill(Number(value)),
      )
    }
    using wide = DeviceBuffer.allocate(device, 'f64', 2)
    expect(() => fillNode(wide, 1.1)).toThrow('fillNode: value must be one whose 32-bit parts are alike')
  })

  test('events are recorded and waited for', async () => {
    using event = Event.create(device)
    using sum = zeros()
    using recording = Graph.create(device)
    recording.add(eventRecordNode(event), { dependencies: [recording.add(kernelNode(add, one, sum, 1))] })
    using waiting = Graph.create(device)
    waiting.add(kernelNode(add, one, sum, 10), { dependencies: [waiting.add(eventWaitNode(event))] })
    using first = recording.instantiate()
    using last = waiting.instantiate()
    first.launch(stream)
    last.launch(other)
    await Promise.all([event.synchronize(), other.synchronize()])
    expect(firstOf(sum)).toBe(11)
  })

  test('words are written and waited for, also between branches', async () => {
    using words = DeviceBuffer.zeros(device, 'u64', 2)
    const [low, high] = [words.slice(0, 1), words.slice(1, 2)]
    using graph = Graph.create(device)
    graph.add(
      memoryOperationsNode([
        { operation: 'wait', memory: low, value: 5 },
        { operation: 'write', memory: high, value: 2n ** 63n },
      ]),
    )
    graph.add(memoryOperationsNode([{ operation: 'write', memory: low, value: 5 }]))
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect([...words.toArraySync()]).toEqual([5n, 2n ** 63n])
    expect(() => memoryOperationsNode([])).toThrow('memoryOperationsNode: operations must be 1 to 256 operations')
    expect(() => memoryOperationsNode([{ operation: 'write', memory: words, value: 1 }])).toThrow(
      'operations[0].memory',
    )
    expect(() => memoryOperationsNode([{ operation: 'write', memory: low, value: -1 }])).toThrow('operations[0].value')
    expect(() => memoryOperationsNode([{ operation: 'read' as never, memory: low, value: 1 }])).toThrow(
      'operations[0].operation',
    )
  })

  test('a graph in a graph', async () => {
    using sum = zeros()
    using inner = Graph.create(device)
    inner.add(kernelNode(add, one, sum, 3), { dependencies: [inner.add(kernelNode(add, one, sum, 4))] })
    using graph = Graph.create(device)
    const child = graph.addGraph(inner)
    graph.addGraph(inner, { dependencies: [child] })
    expect(child.type).toBe('graph')
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(14)
  })

  test('are removed, and edges too', () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const [first, last] = [graph.add(fillNode(sum, 1)), graph.add(fillNode(sum, 2))]
    graph.addDependency(first, last)
    expect(() => graph.addDependency(last, first)).toThrow(StatusError)
    expect(graph.edges).toHaveLength(1)
    graph.removeDependency(first, last)
    expect([graph.edges, graph.rootNodes]).toEqual([[], [first, last]])
    first.remove()
    expect(graph.nodes).toEqual([last])
    expect(() => first.dependencies).toThrow(DisposedError)
    using foreign = Graph.create(device)
    expect(() => foreign.add(emptyNode(), { dependencies: [last] })).toThrow(
      'Graph.add: dependencies[0] must be a node of this graph',
    )
  })
})

describe('conditional nodes', () => {
  test('while: until a kernel says so', async () => {
    using left = zeros()
    using sum = zeros()
    using graph = Graph.create(device)
    const { handle, bodies } = graph.addConditional({ type: 'while', defaultValue: 1 })
    const [body] = bodies as [import('@shoal/driver/graph').Graph]
    body.add(kernelNode(add, one, sum, 2), { dependencies: [body.add(kernelNode(countDown, one, handle, left))] })
    using step = graph.instantiate()
    for (const turns of [3, 1]) {
      left.fill(turns, { stream })
      step.launch(stream)
      await stream.synchronize()
    }
    expect([firstOf(left), firstOf(sum)]).toEqual([0, 8])
    graph.dispose()
    expect(() => body.nodes).toThrow(DisposedError)
  })

  test('if and switch: which graph runs', async () => {
    for (const [type, size, value, expected] of [
      ['if', 1, 0, 0],
      ['if', 1, 5, 1],
      ['if', 2, 0, 10],
      ['switch', 3, 2, 100],
      ['switch', 3, 7, 0],
    ] as const) {
      using sum = zeros()
      using graph = Graph.create(device)
      const { node, handle, bodies } = graph.addConditional({ type, size })
      const decide = graph.add(kernelNode(choose, one, handle, value))
      graph.addDependency(decide, node)
      for (const [index, body] of bodies.entries()) body.add(kernelNode(add, one, sum, 10 ** index))
      using step = graph.instantiate()
      step.launch(stream)
      await stream.synchronize()
      expect(firstOf(sum), `${type} ${size} ${value}`).toBe(expected)
    }
    using graph = Graph.create(device)
    expect(() => graph.addConditional({ type: 'while', size: 2 })).toThrow(RangeError)
    expect(() => graph.addConditional({ type: 'unless' as never })).toThrow('Graph.addConditional: type must be')
  })
})

describe('memory of a graph', () => {
  test('is there between its nodes, and counted', async () => {
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

  test('that no node frees is refused at the next launch, or freed by it', async () => {
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

  test('is what a captured allocation gives', async () => {
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

describe('GraphExec', () => {
  test('stays as it is while the graph changes, until it is updated', async () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const run = graph.add(kernelNode(add, one, sum, 1))
    using step = graph.instantiate()
    run.update(kernelNode(add, one, sum, 100))
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(1)
    expect(step.update(graph)).toEqual({ result: 'success', node: undefined })
    step.launch(stream)
    step.updateNode(run, kernelNode(add, one, sum, 1000))
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(1101)
    using different = graph.clone()
    different.findInClone(run).remove()
    expect(step.update(different)).toEqual({ result: 'topology-changed', node: undefined })
    different.add(fillNode(sum, 1))
    expect(step.update(different)).toMatchObject({ result: 'node-type-changed', node: { type: 'memset' } })
    expect(() => run.update(fillNode(sum, 1))).toThrow(
      'GraphNode.update: description must be of a kernel node, as this one is, not of a memset node',
    )
  })

  test('leaves nodes out', async () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const [first, last] = [graph.add(kernelNode(add, one, sum, 1)), graph.add(kernelNode(add, one, sum, 10))]
    using step = graph.instantiate()
    expect([step.isEnabled(first), step.setEnabled(first, false).isEnabled(first), step.isEnabled(last)]).toEqual([
      true,
      false,
      true,
    ])
    step.launch(stream)
    step.setEnabled(first, true)
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(21)
    expect(() => step.setEnabled(first, 1 as never)).toThrow('GraphExec.setEnabled: enabled must be')
  })

  test('adds what was described though reading the options adds another node', async () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const options = {
      get dependencies() {
        return [graph.add(fillNode(sum, 5))]
      },
    }
    const run = graph.add(kernelNode(add, one, sum, 2), options)
    expect([run.type, ...graph.nodes.map(({ type }) => type)].toSorted()).toEqual(['kernel', 'kernel', 'memset'])
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(7)
  })

  test('refuses attributes of launches where the library has no call for them', () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const run = graph.add(kernelNode(add, one, sum, 1))
    using step = graph.instantiate()
    expect(() => step.updateNode(run, kernelNode(add.with({ priority: 0 }), one, sum, 2))).toThrow(
      /^GraphExec\.updateNode: description must have no launch attributes; use GraphNode\.update/,
    )
  })

  test('takes nodes of the graph that it was made of alone', () => {
    using sum = zeros()
    using graph = Graph.create(device)
    graph.add(fillNode(sum, 1))
    using other = Graph.create(device)
    const foreign = other.add(fillNode(sum, 1))
    using step = graph.instantiate()
    for (const call of [
      () => step.updateNode(foreign, fillNode(sum, 2)),
      () => step.setEnabled(foreign, false),
      () => step.isEnabled(foreign),
    ]) {
      expect(call).toThrow(/^GraphExec\.\w+: node must be of the graph that it was made of/)
    }
  })

  test('says what is gone in place of running on it', () => {
    const memory = zeros()
    using event = Event.create(device)
    using graph = Graph.create(device)
    graph.add(kernelNode(add, one, memory, 1))
    using step = graph.instantiate()
    using captured = Graph.capture(stream, () => {}).keep(event)
    using other = captured.instantiate()
    memory.dispose()
    event.dispose()
    expect(() => step.launch(stream)).toThrow(DisposedError)
    expect(() => graph.instantiate()).toThrow(DisposedError)
    expect(() => other.launch(stream)).toThrow('Event')
    expect(() => captured.keep(1 as never)).toThrow('Graph.keep: objects[0] must be')
    graph.dispose()
    expect(() => graph.nodes).toThrow(DisposedError)
    step.dispose()
    expect(() => step.launch(stream)).toThrow(DisposedError)
    using far = second.createStream()
    using empty = Graph.create(device)
    using emptyStep = empty.instantiate()
    expect(() => emptyStep.launch(far)).toThrow('GraphExec.launch: stream must be one of device 0')
  })

  test('uploads ahead, outlives its graph, and prints as one line', async () => {
    using sum = zeros()
    const graph = Graph.create(device)
    graph.add(kernelNode(add, one, sum, 4))
    using step = graph.instantiate()
    expect(inspect(graph)).toMatch(/^Graph \{ device: 0, handle: 0x[0-9a-f]+ \}$/)
    graph.dispose()
    step.upload(stream)
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(4)
    expect(inspect(step)).toMatch(/^GraphExec \{ device: 0, handle: 0x[0-9a-f]+ \}$/)
  })
})

test('a graph is drawn for Graphviz', () => {
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

test('parameters of kernels are written where C has them', () => {
  const [params, kernel] = [CUgraphNodeParams.offsets, CUDA_KERNEL_NODE_PARAMS_v3.offsets]
  expect(kernelOffsets).toEqual({
    func: params.kernel + kernel.func,
    gridDim: params.kernel + kernel.gridDimX,
    blockDim: params.kernel + kernel.blockDimX,
    sharedMemBytes: params.kernel + kernel.sharedMemBytes,
    kernelParams: params.kernel + kernel.kernelParams,
  })
})
