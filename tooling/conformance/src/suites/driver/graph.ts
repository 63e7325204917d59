import assert from 'node:assert/strict'
import {
  type Device,
  DeviceBuffer,
  DisposedError,
  type Kernel,
  MemoryPool,
  Module,
  PinnedBuffer,
  StatusError,
  type Stream,
} from '@shoal/driver'
import {
  captureInfo,
  copyNode,
  emptyNode,
  fillNode,
  Graph,
  graphMemoryUsage,
  hostNode,
  kernelNode,
  nodeParameters,
  setCaptureDependencies,
  trimGraphMemory,
  withCaptureMode,
} from '@shoal/driver/graph'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

/** data[i] = data[i] * factor + summand, of 32-bit integers. */
const ptx = `.version 7.0
.target sm_70
.address_size 64
.visible .entry affine(.param .u64 data, .param .u32 count, .param .u32 factor, .param .u32 summand) {
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [factor];
  ld.param.u32 %r3, [summand];
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %ntid.x;
  mov.u32 %r6, %tid.x;
  mad.lo.s32 %r7, %r4, %r5, %r6;
  setp.ge.u32 %p1, %r7, %r1;
  @%p1 bra done;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r7, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r8, [%rd4];
  mad.lo.s32 %r8, %r8, %r2, %r3;
  st.global.u32 [%rd4], %r8;
done:
  ret;
}
`

const signature = ['ptr', 'u32', 'u32', 'u32'] as const
type Affine = Kernel<typeof signature>

function load(t: CaseContext, device: Device = t.device): Affine {
  return t.own(Module.loadSync(device, ptx)).kernel('affine', signature)
}

const shape = (length: number) => ({ grid: Math.ceil(length / 128), block: 128 })
const step = (value: number, factor: number, summand: number): number => (Math.imul(value, factor) + summand) >>> 0

const captured: ConformanceCase = {
  name: 'a captured fork and join gives at each launch what the calls give, on any stream',
  async run(t) {
    const affine = load(t)
    const [one, two] = [0, 1].map(() => t.own(t.device.createStream({ nonBlocking: true })))
    assert(one !== undefined && two !== undefined)
    const length = t.random.integer(1, 5000)
    const input = Uint32Array.from({ length }, () => t.random.integer(0, 2 ** 31))
    const memory = t.own(DeviceBuffer.from(t.device, input))
    const half = Math.floor(length / 2)
    const [first, last] = [memory.slice(0, half), memory.slice(half)]
    const graph = t.own(
      Graph.capture(one, () => {
        affine.launch({ ...shape(length), stream: one }, memory, length, 3, 1)
        two.waitEvent(t.own(one.record()))
        if (half > 0) affine.launch({ ...shape(half), stream: one }, first, half, 5, 7)
        affine.launch({ ...shape(length - half), stream: two }, last, length - half, 11, 13)
        one.waitEvent(t.own(two.record()))
      }),
    )
    const exec = t.own(graph.instantiate())
    assertSameBits(await memory.toArray(), input, 'before the first launch')
    const launches = 7
    for (let turn = 0; turn < launches; turn += 1) exec.launch(turn % 2 === 0 ? one : two)
    await Promise.all([one.synchronize(), two.synchronize()])
    const expected = input.map((value, index) => {
      let now = value
      for (let turn = 0; turn < launches; turn += 1) {
        now = step(now, 3, 1)
        now = index < half ? step(now, 5, 7) : step(now, 11, 13)
      }
      return now
    })
    assertSameBits(await memory.toArray(), expected, 'after seven launches')
  },
}

const forbidden: ConformanceCase = {
  name: 'a capture that something forbidden invalidates is ended, and the stream is as before',
  async run(t) {
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const memory = t.own(DeviceBuffer.zeros(t.device, 'u32', 9))
    for (const [call, code] of [
      [() => stream.synchronizeSync(), 'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED'],
      [() => void t.own(DeviceBuffer.allocate(t.device, 'u8', 64)), 'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED'],
    ] as const) {
      assert.throws(
        () => Graph.capture(stream, call),
        (error) => error instanceof StatusError && error.code === code,
      )
      memory.fill(7, { stream })
      await stream.synchronize()
      assertSameBits(await memory.toArray(), new Uint32Array(9).fill(7), 'after a capture that failed')
    }
  },
}

const byHand: ConformanceCase = {
  name: 'nodes added by hand run in the order of their edges, and take other parameters',
  async run(t) {
    const affine = load(t)
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const length = t.random.integer(1, 3000)
    const memory = t.own(DeviceBuffer.zeros(t.device, 'u32', length))
    const result = t.own(PinnedBuffer.allocate(t.device, 'u32', length))
    const graph = t.own(Graph.create(t.device))
    let calls = 0
    const fill = graph.add(fillNode(memory, 2))
    const run = graph.add(kernelNode(affine, shape(length), memory, length, 10, 1), { dependencies: [fill] })
    const copy = graph.add(copyNode(result, memory), { dependencies: [run] })
    const call = graph.add(
      hostNode(() => {
        calls += 1
      }),
      { dependencies: [graph.add(emptyNode(), { dependencies: [copy] })] },
    )
    assert.deepEqual(graph.nodes.map(({ type }) => type).sort(), ['empty', 'host', 'kernel', 'memcpy', 'memset'])
    assert.equal(graph.edges.length, 4)
    assert.deepEqual(run.dependencies, [fill])
    const exec = t.own(graph.instantiate())
    const expect = async (value: number, what: string): Promise<void> => {
      exec.launch(stream)
      await stream.synchronize()
      assertSameBits(result.array, new Uint32Array(length).fill(value), what)
    }
    await expect(21, 'as added')
    exec.updateNode(run, kernelNode(affine, shape(length), memory, length, 100, 3))
    await expect(203, 'with another kernel node')
    exec.setEnabled(run, false)
    await expect(2, 'without its kernel')
    exec.setEnabled(run, true)
    fill.update(fillNode(memory, 5))
    assert.equal(exec.update(graph).result, 'success')
    await expect(51, 'updated to the graph')
    call.remove()
    assert.equal(exec.update(graph).result, 'topology-changed')
    const other = t.own(graph.clone())
    assert.equal(other.findInClone(copy).type, 'memcpy')
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(calls, 4)
  },
}

const child: ConformanceCase = {
  name: 'a graph is a node of another one, as it was when it was added',
  async run(t) {
    const affine = load(t)
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const memory = t.own(DeviceBuffer.zeros(t.device, 'u32', 3))
    const inner = t.own(Graph.create(t.device))
    inner.add(kernelNode(affine, shape(3), memory, 3, 3, 1))
    const graph = t.own(Graph.create(t.device))
    const first = graph.addGraph(inner)
    graph.addGraph(inner, { dependencies: [first] })
    inner.add(fillNode(memory, 99))
    const exec = t.own(graph.instantiate())
    exec.launch(stream)
    await stream.synchronize()
    assertSameBits(await memory.toArray(), new Uint32Array(3).fill(4), 'two children')
  },
}

const conditional: ConformanceCase = {
  name: 'a conditional node runs the graph that its value says',
  async run(t) {
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    for (const [value, expected] of [
      [0, 0],
      [1, 6],
    ] as const) {
      const memory = t.own(DeviceBuffer.zeros(t.device, 'u32', 5))
      const graph = t.own(Graph.create(t.device))
      const { bodies } = graph.addConditional({ type: 'if', defaultValue: value })
      bodies[0]?.add(fillNode(memory, 6))
      const exec = t.own(graph.instantiate())
      exec.launch(stream)
      await stream.synchronize()
      assertSameBits(await memory.toArray(), new Uint32Array(5).fill(expected), `if ${value}`)
    }
  },
}

const graphMemory: ConformanceCase = {
  name: 'memory of a graph is there between its nodes, launch after launch, and is given back',
  async run(t) {
    const affine = load(t)
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const length = t.random.integer(1, 100_000)
    const result = t.own(DeviceBuffer.zeros(t.device, 'u32', length))
    trimGraphMemory(t.device)
    const before = graphMemoryUsage(t.device).used
    const graph = t.own(
      Graph.capture(stream, () => {
        const memory = DeviceBuffer.allocateOn(stream, 'u32', length)
        memory.fill(4, { stream })
        affine.launch({ ...shape(length), stream }, memory, length, 10, 2)
        result.copyFrom(memory, { stream })
        memory.disposeOn(stream)
      }),
    )
    assert.deepEqual(graph.nodes.map(({ type }) => type).sort(), [
      'kernel',
      'mem-alloc',
      'mem-free',
      'memcpy',
      'memset',
    ])
    const exec = graph.instantiate()
    for (let turn = 0; turn < 3; turn += 1) exec.launch(stream)
    await stream.synchronize()
    assertSameBits(await result.toArray(), new Uint32Array(length).fill(42), 'through memory of the graph')
    assert(graphMemoryUsage(t.device).used >= before + length * 4, 'the graph has memory from its first launch on')
    exec.dispose()
    graph.dispose()
    trimGraphMemory(t.device)
    assert.equal(graphMemoryUsage(t.device).used, before)
  },
}

const gone: ConformanceCase = {
  name: 'a launch names what is gone, in place of running on it',
  run(t) {
    const affine = load(t)
    const memory = DeviceBuffer.zeros(t.device, 'u32', 4)
    const graph = t.own(Graph.create(t.device))
    graph.add(kernelNode(affine, shape(4), memory, 4, 1, 1))
    const exec = t.own(graph.instantiate())
    memory.dispose()
    assert.throws(() => exec.launch(), DisposedError)
  },
}

const readBack: ConformanceCase = {
  name: 'what nodes do is read back, captured ones too; nodes by hand stand among captured ones',
  async run(t) {
    const affine = load(t)
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const length = t.random.integer(1, 3000)
    const [memory, other] = [0, 1].map(() => t.own(DeviceBuffer.zeros(t.device, 'u32', length)))
    assert(memory !== undefined && other !== undefined)
    const graph = t.own(Graph.create(t.device))
    assert.equal(captureInfo(stream), undefined)
    graph.capture(stream, () => {
      memory.fill(4, { stream })
      const info = captureInfo(stream)
      assert.equal(info?.status, 'active')
      assert.equal(info.graphHandle, graph.handle)
      assert.deepEqual(
        info.dependencyHandles,
        graph.nodes.map(({ handle }) => handle),
      )
      const copy = graph.add(copyNode(other, memory), { dependencies: graph.nodes })
      setCaptureDependencies(stream, [copy])
      affine.launch({ ...shape(length), stream }, other, length, 5, 2)
      // Allocating is refused while a stream is captured, except in this mode.
      withCaptureMode('relaxed', () => t.own(DeviceBuffer.allocate(t.device, 'u32', 1)))
    })
    const [fill, copy, kernel] = graph.nodes.map(nodeParameters)
    assert(fill?.type === 'memset' && copy?.type === 'memcpy' && kernel?.type === 'kernel')
    assert.deepEqual([fill.address, fill.value], [memory.address, 4])
    assert.equal(fill.elementBytes * fill.width * fill.height, length * 4)
    assert.deepEqual([copy.source.handle, copy.target.handle], [memory.address, other.address])
    assert.equal(copy.extent[0] * copy.extent[1] * copy.extent[2], length * 4)
    assert.deepEqual(
      [kernel.grid, kernel.block],
      [
        [shape(length).grid, 1, 1],
        [128, 1, 1],
      ],
    )
    t.note(`the kernel is called ${kernel.name}`)
    t.own(graph.instantiate()).launch(stream)
    await stream.synchronize()
    assertSameBits(await other.toArray(), new Uint32Array(length).fill(22), 'filled, copied by hand, computed')
  },
}

const twoDevices: ConformanceCase = {
  name: 'a graph works on two devices',
  requires: { devices: 2 },
  async run(t) {
    const [here, there] = t.devices
    assert(here !== undefined && there !== undefined)
    const length = t.random.integer(1, 4000)
    const values = Uint32Array.from({ length }, () => t.random.integer(0, 2 ** 31))
    const from = t.own(DeviceBuffer.from(here, values))
    const to = t.own(DeviceBuffer.zeros(there, 'u32', length))
    const affine = load(t, there)
    const graph = t.own(Graph.create(here))
    const copy = graph.add(copyNode(to, from))
    graph.add(kernelNode(affine, shape(length), to, length, 2, 1), { dependencies: [copy] })
    const exec = t.own(graph.instantiate())
    const stream = t.own(here.createStream({ nonBlocking: true }))
    exec.launch(stream)
    await stream.synchronize()
    assertSameBits(
      await to.toArray(),
      values.map((value) => step(value, 2, 1)),
      'copied and changed',
    )
  },
}

const memoryFromBefore: ConformanceCase = {
  name: 'memory of a stream from before a capture is given back behind it, what the capture allocates is of the graph',
  async run(t) {
    const [stream, side] = [0, 1].map(() => t.device.createStream({ nonBlocking: true })) as [Stream, Stream]
    t.own(stream)
    const target = t.own(DeviceBuffer.zeros(t.device, 'u32', 64))
    const pool = t.own(MemoryPool.create(t.device))
    const before = pool.allocate(stream, 'u8', 1 << 20)
    await stream.synchronize()
    const graph = t.own(
      Graph.capture(stream, () => {
        before.dispose()
        side.waitEvent(t.own(stream.record()))
        const own = DeviceBuffer.allocateOn(stream, 'u32', 64).fill(7, { stream })
        target.copyFrom(own, { stream })
        own.disposeOn(stream)
        stream.waitEvent(t.own(side.record()))
        side.dispose()
      }),
    )
    await stream.synchronize()
    assert.equal(pool.used.current, 0)
    const types = graph.nodes.map(({ type }) => type).sort()
    assert.deepEqual(types, ['mem-alloc', 'mem-free', 'memcpy', 'memset'])
    const exec = t.own(graph.instantiate())
    for (let turn = 0; turn < 3; turn += 1) exec.launch(stream)
    await stream.synchronize()
    assertSameBits(await target.toArray({ stream }), new Uint32Array(64).fill(7), 'written at each launch')
  },
}

export const graphSuite: Suite = {
  name: 'driver: graphs',
  cases: [captured, forbidden, byHand, child, conditional, graphMemory, memoryFromBefore, gone, readBack, twoDevices],
}
