import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Device, DeviceBuffer, type Kernel, Module, PinnedBuffer, StatusError, type Stream } from '@shoal/driver'
import {
  childGraphNode,
  copyNode,
  emptyNode,
  eventRecordNode,
  fillNode,
  Graph,
  type GraphExec,
  hostNode,
  kernelNode,
} from '@shoal/driver/graph'
import { Linker } from '@shoal/driver/library'
import { CudaArray } from '@shoal/driver/texture'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

/**
 * `launch` and `again` call cudaGraphLaunch and store its status. `who` stores the graph that it runs in. `countDown`
 * ends a loop.
 */
const ptx = `.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) cudaGraphLaunch (.param .b64 graph, .param .b64 stream);
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry add(.param .u64 at, .param .u32 value) {
  .reg .b64 %p; .reg .b32 %n;
  ld.param.u64 %p, [at];
  ld.param.u32 %n, [value];
  red.global.add.u32 [%p], %n;
  ret;
}
.visible .entry launch(.param .u64 graph, .param .u64 how, .param .u64 status, .param .u32 times) {
  .reg .b64 %g, %h, %s; .reg .b32 %r, %n; .reg .pred %more;
  ld.param.u64 %g, [graph];
  ld.param.u64 %h, [how];
  ld.param.u64 %s, [status];
  ld.param.u32 %n, [times];
next:
  { .param .b64 a; .param .b64 b; .param .b32 c;
    st.param.b64 [a], %g; st.param.b64 [b], %h;
    call.uni (c), cudaGraphLaunch, (a, b);
    ld.param.b32 %r, [c]; }
  st.global.u32 [%s], %r;
  add.u64 %s, %s, 4;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %more, %n, 0;
  @%more bra next;
  ret;
}
.visible .entry again(.param .u64 how, .param .u64 status, .param .u64 left) {
  .reg .b64 %g, %h, %s, %l; .reg .b32 %r, %n; .reg .pred %none;
  ld.param.u64 %h, [how];
  ld.param.u64 %s, [status];
  ld.param.u64 %l, [left];
  ld.global.u32 %n, [%l];
  sub.u32 %n, %n, 1;
  st.global.u32 [%l], %n;
  setp.eq.u32 %none, %n, 0;
  @%none ret;
  mov.u64 %g, %current_graph_exec;
  { .param .b64 a; .param .b64 b; .param .b32 c;
    st.param.b64 [a], %g; st.param.b64 [b], %h;
    call.uni (c), cudaGraphLaunch, (a, b);
    ld.param.b32 %r, [c]; }
  st.global.u32 [%s], %r;
  ret;
}
.visible .entry who(.param .u64 at) {
  .reg .b64 %p, %g;
  ld.param.u64 %p, [at];
  mov.u64 %g, %current_graph_exec;
  st.global.u64 [%p], %g;
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
}`

/** The values of cudaStreamGraphTailLaunch and similar streams, which kernels use. */
const tail = 1n << 56n
const fireAndForget = 2n << 56n
const sibling = 3n << 56n
const invalidValue = 1 // cudaErrorInvalidValue

interface Tools {
  readonly stream: Stream
  readonly add: Kernel<['ptr', 'u32']>
  readonly launch: Kernel<['u64', 'u64', 'ptr', 'u32']>
  readonly again: Kernel<['u64', 'ptr', 'ptr']>
  readonly who: Kernel<['ptr']>
  readonly countDown: Kernel<['u64', 'ptr']>
  /** The sum that the kernel `add` adds to. */
  readonly sum: DeviceBuffer<'u32'>
  readonly statuses: DeviceBuffer<'u32'>
}

/** On a GPU, the kernels are linked with CUDA's device runtime. */
async function makeTools(t: CaseContext): Promise<Tools> {
  const linker = t.own(Linker.create(t.device)).add(ptx, { name: 'kernels' })
  if (!t.isSoftware) {
    const roots = [process.env['CUDA_HOME'], process.env['CUDA_PATH'], '/usr/local/cuda'].filter((root) => root)
    const files = roots.flatMap((root) =>
      ['lib64', 'lib'].map((folder) => join(root as string, folder, 'libcudadevrt.a')),
    )
    linker.addFile(files.find(existsSync) ?? t.skip('no libcudadevrt.a on this machine'))
  }
  const module = t.own(await Module.load(t.device, await linker.complete()))
  return {
    stream: t.own(t.device.createStream({ nonBlocking: true })),
    add: module.kernel('add', ['ptr', 'u32']),
    launch: module.kernel('launch', ['u64', 'u64', 'ptr', 'u32']),
    again: module.kernel('again', ['u64', 'ptr', 'ptr']),
    who: module.kernel('who', ['ptr']),
    countDown: module.kernel('countDown', ['u64', 'ptr']),
    sum: t.own(DeviceBuffer.zeros(t.device, 'u32', 1)),
    statuses: t.own(DeviceBuffer.zeros(t.device, 'u32', 256)),
  }
}

const one = { grid: 1, block: 1 } as const

const words = (t: CaseContext, value: number, length = 1): DeviceBuffer<'u32'> =>
  t.own(DeviceBuffer.from(t.device, new Uint32Array(length).fill(value)))

function adding(t: CaseContext, { add, sum }: Tools, value = 1): Graph {
  const graph = t.own(Graph.create(t.device))
  graph.add(kernelNode(add, one, sum, value))
  return graph
}

const forKernels = (t: CaseContext, graph: Graph): GraphExec => t.own(graph.instantiate({ deviceLaunch: true }))

function launching(t: CaseContext, { launch, statuses }: Tools, exec: GraphExec, how: bigint, times = 1): Graph {
  const graph = t.own(Graph.create(t.device)).keep(exec)
  graph.add(kernelNode(launch, one, exec.handle, how, statuses, times))
  return graph
}

/** Runs a graph. Returns the statuses of its kernels' calls, and the sum after that. */
async function run(t: CaseContext, tools: Tools, graph: Graph | GraphExec, calls = 1) {
  const { stream, statuses, sum } = tools
  const exec = graph instanceof Graph ? t.own(graph.instantiate()) : graph
  exec.launch(stream)
  await stream.synchronize()
  return { statuses: [...(await statuses.toArray()).slice(0, calls)], sum: (await sum.toArray())[0] }
}

const launched: ConformanceCase = {
  name: 'a kernel of one graph launches another one, which is as it was brought to the device last',
  async run(t) {
    const tools = await makeTools(t)
    const exec = forKernels(t, adding(t, tools, 3))
    assert.deepEqual(exec.flags, { autoFreeOnLaunch: false, deviceLaunch: true, useNodePriority: false })
    const graph = launching(t, tools, exec, fireAndForget)
    assert.deepEqual(await run(t, tools, graph), { statuses: [invalidValue], sum: 0 }, 'not brought to the device')
    exec.upload(tools.stream)
    assert.deepEqual(await run(t, tools, graph), { statuses: [0], sum: 3 })
    assert.equal(exec.update(adding(t, tools, 10)).result, 'success')
    assert.deepEqual(await run(t, tools, graph), { statuses: [0], sum: 6 }, 'updated, and not brought there again')
    exec.launch(tools.stream)
    assert.deepEqual(await run(t, tools, graph), { statuses: [0], sum: 26 }, 'the host launches it, too')
    assert.deepEqual(
      await run(t, tools, launching(t, tools, exec, sibling)),
      { statuses: [0], sum: 36 },
      'beside the graph that launches it',
    )
    const inner = forKernels(t, launching(t, tools, exec, fireAndForget))
    inner.upload(tools.stream)
    assert.deepEqual(await run(t, tools, launching(t, tools, inner, fireAndForget)), { statuses: [0], sum: 46 })
  },
}

const tails: ConformanceCase = {
  name: 'a graph that is left to the end runs after all others, and a graph may launch itself so',
  async run(t) {
    const tools = await makeTools(t)
    const exec = forKernels(t, adding(t, tools, 5))
    exec.upload(tools.stream)
    const seen = words(t, 9)
    const graph = launching(t, tools, exec, tail)
    graph.add(copyNode(seen, tools.sum), { dependencies: graph.nodes })
    assert.deepEqual(await run(t, tools, graph), { statuses: [0], sum: 5 })
    assertSameBits(await seen.toArray(), Uint32Array.of(0), 'before it')

    const turns = t.random.integer(2, 20)
    for (const [how, options, status, left] of [
      [tail, { deviceLaunch: true }, 0, 0],
      [fireAndForget, { deviceLaunch: true }, invalidValue, turns - 1],
      [tail, {}, invalidValue, turns - 1],
    ] as const) {
      tools.sum.fill(0, { stream: tools.stream })
      const count = words(t, turns)
      const loop = adding(t, tools)
      loop.add(kernelNode(tools.again, one, how, tools.statuses, count), { dependencies: loop.nodes })
      assert.deepEqual(await run(t, tools, t.own(loop.instantiate(options))), { statuses: [status], sum: turns - left })
      assertSameBits(await count.toArray(), Uint32Array.of(left), 'what is left')
    }
  },
}

const limits: ConformanceCase = {
  name: 'what waits to run is not launched again, and 120 graphs are the most that one launches to run at once',
  async run(t) {
    const tools = await makeTools(t)
    const exec = forKernels(t, adding(t, tools))
    exec.upload(tools.stream)
    // A launch that runs at once may end before the next call.
    const fired = await run(t, tools, launching(t, tools, exec, fireAndForget, 3), 3)
    assert.equal(fired.statuses[0], 0)
    assert.ok(fired.statuses.every((status) => status === 0 || status === invalidValue))
    assert.equal(fired.sum, fired.statuses.filter((status) => status === 0).length)
    tools.sum.fill(0, { stream: tools.stream })
    const refused = [0, invalidValue, invalidValue]
    assert.deepEqual(await run(t, tools, launching(t, tools, exec, tail, 3), 3), { statuses: refused, sum: 1 })
    assert.deepEqual(await run(t, tools, launching(t, tools, exec, 0n)), { statuses: [invalidValue], sum: 1 })
    const many = t.own(Graph.create(t.device))
    for (let index = 0; index < 125; index += 1) {
      const each = forKernels(t, adding(t, tools))
      each.upload(tools.stream)
      const status = tools.statuses.slice(index, index + 1)
      const node = kernelNode(tools.launch, one, each.handle, fireAndForget, status, 1)
      many.add(node, { dependencies: many.nodes.slice(-1) })
    }
    const statuses = Array.from({ length: 125 }, (_, index) => (index < 120 ? 0 : invalidValue))
    assert.deepEqual(await run(t, tools, many, 125), { statuses, sum: 121 })
  },
}

const nodes: ConformanceCase = {
  name: 'such a graph has kernels, copies, fills and graphs of these, and what else is in it is named',
  async run(t) {
    const tools = await makeTools(t)
    const [target, source] = [1, 2].map((value) => words(t, value, 7))
    assert(target !== undefined && source !== undefined)
    const pinned = t.own(PinnedBuffer.allocate(t.device, 'u32', 7))
    const graph = adding(t, tools, 4)
    const fill = graph.add(fillNode(source, 8), { dependencies: graph.nodes })
    const copy = graph.add(copyNode(target, source), { dependencies: [fill] })
    const down = graph.add(copyNode(pinned, target), { dependencies: [copy] })
    graph.add(childGraphNode(adding(t, tools, 6)), { dependencies: [down] })
    const exec = forKernels(t, graph)
    exec.upload(tools.stream)
    assert.deepEqual(await run(t, tools, launching(t, tools, exec, fireAndForget)), { statuses: [0], sum: 10 })
    assertSameBits(pinned.array, new Uint32Array(7).fill(8), 'filled and copied')

    const event = t.own(t.device.createEvent())
    const array = t.own(CudaArray.create(t.device, { width: 7, format: 'u32' }))
    for (const [type, put] of [
      ['empty', (to: Graph) => to.add(emptyNode())],
      ['host', (to: Graph) => to.add(hostNode(() => {}))],
      ['event-record', (to: Graph) => to.add(eventRecordNode(event))],
      ['conditional', (to: Graph) => to.addConditional({ type: 'if' }).bodies[0]?.add(fillNode(target, 1))],
      ['memcpy', (to: Graph) => to.add(copyNode(array, source))],
      ['mem-alloc', (to: Graph) => to.allocate('u32', 4)],
    ] as const) {
      const other = adding(t, tools)
      put(other)
      assert.throws(
        () => other.instantiate({ deviceLaunch: true }),
        (error) => error instanceof StatusError && error.message.includes(`node 1 (${type})`),
        type,
      )
    }
    assert.throws(() => t.own(Graph.create(t.device)).instantiate({ deviceLaunch: true }), StatusError)
    assert.throws(
      () => exec.updateNode(copy, copyNode(array, source)),
      (error) => error instanceof StatusError && error.code === 'CUDA_ERROR_INVALID_VALUE',
    )
    assert.throws(
      () => tools.launch.launch({ ...one, stream: tools.stream }, exec.handle, fireAndForget, tools.statuses, 1),
      (error) => error instanceof StatusError && error.code === 'CUDA_ERROR_NOT_SUPPORTED',
      'outside of a graph',
    )
  },
}

const runs: ConformanceCase = {
  name: 'a run ends before what was left to its end, lasts when its graph is disposed of, and knows its graph',
  async run(t) {
    const tools = await makeTools(t)
    const { stream, launch, statuses, sum } = tools
    const found = t.own(DeviceBuffer.zeros(t.device, 'u64', 1))
    for (const deviceLaunch of [true, false]) {
      const graph = t.own(Graph.create(t.device))
      graph.add(kernelNode(tools.who, one, found))
      const exec = t.own(graph.instantiate({ deviceLaunch }))
      await run(t, tools, exec)
      assert.equal((await found.toArray())[0], deviceLaunch ? exec.handle : 0n)
    }

    // `exec` launches `left` at its end. `left` then launches `exec` again, but this launch of `left` fails because
    // `left` still runs.
    const first = adding(t, tools)
    const last = first.add(kernelNode(launch, one, 0n, tail, statuses, 1), { dependencies: first.nodes })
    const exec = forKernels(t, first)
    const second = t.own(Graph.create(t.device))
    second.add(kernelNode(launch, one, exec.handle, fireAndForget, statuses.slice(1, 2), 1))
    const left = forKernels(t, second)
    exec.updateNode(last, kernelNode(launch, one, left.handle, tail, statuses, 1))
    for (const each of [exec, left]) each.upload(stream)
    assert.deepEqual(await run(t, tools, exec, 2), { statuses: [invalidValue, 0], sum: 2 })

    sum.fill(0, { stream })
    const turns = 500
    const count = words(t, turns)
    const loop = adding(t, tools)
    loop.add(kernelNode(tools.again, one, tail, statuses, count), { dependencies: loop.nodes })
    const gone = loop.instantiate({ deviceLaunch: true })
    gone.launch(stream)
    gone.dispose()
    await stream.synchronize()
    assertSameBits(await sum.toArray(), Uint32Array.of(turns), 'after the graph was disposed of')
  },
}

const order: ConformanceCase = {
  name: 'a graph is brought to the device in the order of the stream',
  async run(t) {
    const tools = await makeTools(t)
    const { stream } = tools
    const exec = forKernels(t, adding(t, tools, 1))
    exec.upload(stream)
    const launcher = t.own(launching(t, tools, exec, fireAndForget).instantiate())
    await stream.synchronize()
    const gate = t.own(DeviceBuffer.zeros(t.device, 'u32', 1))
    const other = t.own(t.device.createStream({ nonBlocking: true }))
    for (const [uploading, later, sum] of [
      [stream, 20, 1],
      [other, 300, 1 + 300],
    ] as const) {
      gate.fill(0, { stream })
      await stream.synchronize()
      stream.waitValue(gate, 1)
      launcher.launch(stream)
      assert.equal(exec.update(adding(t, tools, later)).result, 'success')
      exec.upload(uploading)
      if (uploading === other) await other.synchronize()
      other.writeValue(gate, 1)
      await Promise.all([stream.synchronize(), other.synchronize()])
      assertSameBits(await tools.sum.toArray(), Uint32Array.of(sum), 'what was there when the launcher ran')
    }
  },
}

const devices: ConformanceCase = {
  name: 'such a graph has nodes of one device',
  requires: { devices: 2 },
  async run(t) {
    const tools = await makeTools(t)
    const graph = adding(t, tools)
    const there = t.own(DeviceBuffer.zeros(t.devices[1] as Device, 'u32', 5))
    const other = t.own(Graph.create(t.devices[1] as Device))
    other.add(fillNode(there, 1))
    graph.addGraph(other)
    assert.throws(
      () => graph.instantiate({ deviceLaunch: true }),
      (error) => error instanceof StatusError && error.message.includes('nodes of several contexts are not supported'),
    )
  },
}

const conditions: ConformanceCase = {
  name: 'a loop runs as often as its kernel says, and a kernel before a choice makes it',
  async run(t) {
    const tools = await makeTools(t)
    const turns = t.random.integer(1, 30)
    const left = words(t, turns)
    const loop = t.own(Graph.create(t.device))
    const { handle, bodies } = loop.addConditional({ type: 'while', defaultValue: 1 })
    const body = bodies[0] as Graph
    const first = body.add(kernelNode(tools.add, one, tools.sum, 3))
    body.add(kernelNode(tools.countDown, one, handle, left), { dependencies: [first] })
    const exec = t.own(loop.instantiate())
    for (let launch = 1; launch <= 2; launch += 1) {
      assert.equal((await run(t, tools, exec)).sum, 3 * turns * launch)
      left.fill(turns, { stream: tools.stream })
    }

    tools.sum.fill(0, { stream: tools.stream })
    const choice = t.own(Graph.create(t.device))
    const made = choice.addConditional({ type: 'if', defaultValue: 1 })
    // The value becomes 0 when 1 is left.
    const decide = choice.add(kernelNode(tools.countDown, one, made.handle, left))
    choice.addDependency(decide, made.node)
    made.bodies[0]?.add(kernelNode(tools.add, one, tools.sum, 1))
    const chosen = t.own(choice.instantiate())
    left.fill(3, { stream: tools.stream })
    const sums: unknown[] = []
    for (let launch = 0; launch < 3; launch += 1) sums.push((await run(t, tools, chosen)).sum)
    assert.deepEqual(sums, [1, 2, 2])
  },
}

/** Graphs that kernels launch, and kernels that decide what runs: the part of CUDA's device runtime for graphs. */
export const deviceLaunchSuite: Suite = {
  name: 'driver: launches and decisions by kernels',
  cases: [launched, tails, limits, nodes, runs, order, devices, conditions],
}
