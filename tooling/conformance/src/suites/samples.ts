import assert from 'node:assert/strict'
import {
  AddressRange,
  allocationGranularity,
  type Device,
  DeviceBuffer,
  type Kernel,
  type KernelSignature,
  ManagedBuffer,
  Module,
  maxActiveBlocks,
  PhysicalMemory,
  PinnedBuffer,
} from '@shoal/driver'
import { copyNode, fillNode, Graph, hostNode, kernelNode } from '@shoal/driver/graph'
import type { CaseContext, ConformanceCase, Suite } from '../suite.js'
import { assertSameBits } from '../support/compare.js'
import { addPtx, dependentPtx, histogramPtx, productPtx, sumEverywherePtx, sumPtx } from '../support/samples/kernels.js'

const threads = 128

function load<const S extends KernelSignature>(
  t: CaseContext,
  ptx: string,
  name: string,
  signature: S,
  device: Device = t.device,
): Kernel<S> {
  return t.own(Module.loadSync(device, ptx)).kernel(name, signature)
}

const words = (t: CaseContext, length: number): Uint32Array<ArrayBuffer> =>
  Uint32Array.from({ length }, () => t.random.word() >>> 0)
const total = (values: Uint32Array): number => values.reduce((sum, value) => (sum + value) >>> 0, 0)
const blocksFor = (length: number): number => Math.ceil(length / threads)

const simpleGraphs: ConformanceCase = {
  name: 'simple graphs: a sum in two kernels, by hand, captured and cloned',
  async run(t) {
    const sum = load(t, sumPtx, 'sum', ['ptr', 'ptr', 'u32'])
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const [length, blocks] = [t.random.integer(1, 50_000), t.random.integer(1, 60)]
    const input = t.own(PinnedBuffer.allocate(t.device, 'u32', length))
    const values = t.own(DeviceBuffer.allocate(t.device, 'u32', length))
    const parts = t.own(DeviceBuffer.allocate(t.device, 'u32', blocks))
    const all = t.own(DeviceBuffer.allocate(t.device, 'u32', 1))
    const result = t.own(PinnedBuffer.allocate(t.device, 'u32', 1))
    const found: number[] = []
    const called = (): void => void found.push(result.array[0] as number)

    const byHand = t.own(Graph.create(t.device))
    const filled = byHand.add(fillNode(all, 0))
    const copied = byHand.add(copyNode(values, input))
    const first = kernelNode(sum, { grid: blocks, block: threads }, values, parts, length)
    const inParts = byHand.add(first, { dependencies: [copied] })
    const second = kernelNode(sum, { grid: 1, block: threads }, parts, all, blocks)
    const together = byHand.add(second, { dependencies: [inParts, filled] })
    const back = byHand.add(copyNode(result, all), { dependencies: [together] })
    byHand.add(hostNode(called), { dependencies: [back] })

    const captured = t.own(
      Graph.capture(stream, () => {
        values.copyFrom(input, { stream })
        all.fill(0, { stream })
        sum.launch({ grid: blocks, block: threads, stream }, values, parts, length)
        sum.launch({ grid: 1, block: threads, stream }, parts, all, blocks)
        all.copyTo(result, { stream })
      }),
    )
    for (const [way, graph] of Object.entries({ byHand, captured, clone: t.own(captured.clone()) })) {
      const exec = t.own(graph.instantiate())
      for (let turn = 0; turn < 3; turn += 1) {
        const given = words(t, length)
        input.array.set(given)
        result.array[0] = 0
        exec.launch(stream)
        await stream.synchronize()
        assert.equal(result.array[0], total(given), way)
        if (way !== 'byHand') continue
        while (found.length <= turn) await new Promise((resolve) => setTimeout(resolve, 1))
        assert.equal(found[turn], total(given), 'seen by the host node')
      }
    }
  },
}

const graphMemory: ConformanceCase = {
  name: 'graph memory nodes: memory that one graph allocates and another one frees',
  async run(t) {
    const add = load(t, addPtx, 'add', ['ptr', 'ptr', 'ptr', 'u32'])
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const values = words(t, 1000)
    const [input, output] = [
      t.own(DeviceBuffer.from(t.device, values)),
      t.own(DeviceBuffer.zeros(t.device, 'u32', 1000)),
    ]
    const makes = t.own(Graph.create(t.device))
    const { node, memory } = makes.allocate('u32', 1000)
    const config = { grid: blocksFor(1000), block: threads }
    makes.add(kernelNode(add, config, input, input, memory, 1000), { dependencies: [node] })
    const uses = t.own(Graph.create(t.device))
    const read = uses.add(kernelNode(add, config, input, memory, output, 1000))
    uses.free(memory, { dependencies: [read] })
    const [one, two] = [t.own(makes.instantiate()), t.own(uses.instantiate())]
    for (let turn = 0; turn < 3; turn += 1) {
      output.fill(0, { stream })
      one.launch(stream)
      two.launch(stream)
      await stream.synchronize()
      assertSameBits(
        await output.toArray(),
        values.map((value) => Math.imul(value, 3) >>> 0),
        'three times the values',
      )
    }
  },
}

const mappedVectors: ConformanceCase = {
  name: 'vector add by mapped memory: vectors whose pieces lie on all devices in turn',
  async run(t) {
    const homes = t.devices.filter((device) => device === t.device || t.device.canAccessPeer(device))
    const bytes = Math.max(...homes.map((device) => allocationGranularity(device)))
    const pieces = homes.length * 2
    const length = (bytes * pieces) / 4
    const makeVector = (values: Uint32Array | undefined): DeviceBuffer<'u32'> => {
      const range = t.own(AddressRange.reserve(bytes * pieces))
      for (let piece = 0; piece < pieces; piece += 1) {
        const home = homes[piece % homes.length] as Device
        using memory = PhysicalMemory.create(home, bytes)
        const access = [{ place: t.device, access: 'readWrite' }] as const
        t.own(range.map(memory, { offset: piece * bytes, access }))
      }
      const vector = DeviceBuffer.fromAddress(t.device, range.address, 'u32', length, { keep: range })
      return values === undefined ? vector : vector.copyFromSync(values)
    }
    const [a, b] = [words(t, length), words(t, length)]
    const [from, more, to] = [makeVector(a), makeVector(b), makeVector(undefined)]
    const add = load(t, addPtx, 'add', ['ptr', 'ptr', 'ptr', 'u32'])
    add.launch({ grid: blocksFor(length), block: threads }, from, more, to, length)
    assertSameBits(
      await to.toArray(),
      a.map((value, index) => (value + (b[index] as number)) >>> 0),
      'the sums',
    )
    t.note(`${pieces} pieces of ${bytes} bytes on ${homes.length} devices`)
  },
}

function peers(t: CaseContext): readonly [Device, Device] {
  const [one, two] = t.devices as [Device, Device]
  if (!one.canAccessPeer(two) || !two.canAccessPeer(one)) t.skip('these devices have no peer access')
  for (const [from, to] of [
    [one, two],
    [two, one],
  ] as const) {
    from.enablePeerAccess(to)
    t.defer(() => from.disablePeerAccess(to))
  }
  return [one, two]
}

const peerToPeer: ConformanceCase = {
  name: 'peer to peer: copies there and back, and kernels that read the other device’s memory',
  requires: { devices: 2 },
  async run(t) {
    const [one, two] = peers(t)
    const length = t.random.integer(1, 100_000)
    const values = words(t, length)
    const [here, there] = [DeviceBuffer.from(one, values), DeviceBuffer.zeros(two, 'u32', length)].map((each) =>
      t.own(each),
    ) as [DeviceBuffer<'u32'>, DeviceBuffer<'u32'>]
    const [first, second] = [
      t.own(one.createStream({ nonBlocking: true })),
      t.own(two.createStream({ nonBlocking: true })),
    ]
    for (let turn = 0; turn < 25; turn += 1) {
      there.copyFrom(here, { stream: second })
      first.waitEvent(t.own(second.record()))
      here.copyFrom(there, { stream: first })
      second.waitEvent(t.own(first.record()))
    }
    await second.synchronize()
    const signature = ['ptr', 'ptr', 'ptr', 'u32'] as const
    // Each device doubles the other device's data.
    load(t, addPtx, 'add', signature, two).launch(
      { grid: blocksFor(length), block: threads },
      here,
      here,
      there,
      length,
    )
    await two.primaryContext.synchronize()
    load(t, addPtx, 'add', signature, one).launch(
      { grid: blocksFor(length), block: threads },
      there,
      there,
      here,
      length,
    )
    assertSameBits(
      await here.toArray(),
      values.map((value) => (value * 4) >>> 0),
      'doubled on both',
    )
  },
}

const cooperative: ConformanceCase = {
  name: 'cooperative groups of several devices: a barrier of each grid, and one of all devices',
  requires: { devices: 2 },
  async run(t) {
    const devices = peers(t)
    const signature = ['ptr', 'u32', 'ptr', 'ptr', 'ptr', 'u32', 'u32', 'ptr'] as const
    const kernels = devices.map((device) => load(t, sumEverywherePtx, 'sumEverywhere', signature, device))
    const length = t.random.integer(1, 40_000)
    for (let turn = 0; turn < 3; turn += 1) {
      const parts = devices.map(() => words(t, length))
      const [flags, sums] = [0, 1].map(() => t.own(DeviceBuffer.zeros(devices[0], 'u32', devices.length)))
      const outs = devices.map((device, rank) => {
        const kernel = kernels[rank] as (typeof kernels)[number]
        const most = maxActiveBlocks(device, kernel, threads) * device.attribute('MULTIPROCESSOR_COUNT')
        const blocks = Math.min(most, 16)
        const out = t.own(DeviceBuffer.zeros(device, 'u32', blocks))
        const given = t.own(DeviceBuffer.from(device, parts[rank] as Uint32Array))
        const own = t.own(DeviceBuffer.zeros(device, 'u32', 2))
        const stream = t.own(device.createStream({ nonBlocking: true }))
        const launch = (): void =>
          kernel
            .with({ cooperative: true })
            .launch(
              { grid: blocks, block: threads, stream },
              given,
              length,
              own,
              flags as DeviceBuffer<'u32'>,
              sums as DeviceBuffer<'u32'>,
              rank,
              devices.length,
              out,
            )
        return { out, stream, launch }
      })
      // All kernels must run at the same time, because each waits for the others.
      for (const { launch } of outs) launch()
      await Promise.all(outs.map(({ stream }) => stream.synchronize()))
      const expected = parts.reduce((sum, part) => (sum + total(part)) >>> 0, 0)
      for (const { out } of outs)
        assertSameBits(await out.toArray(), new Uint32Array(out.length).fill(expected), 'the sum')
    }
  },
}

function needCapability(t: CaseContext, what: string): void {
  const { major } = t.device.computeCapability
  if (major < 9) t.skip(`${what} needs compute capability 9.0, not ${major}`)
}

const clusterHistogram: ConformanceCase = {
  name: 'cluster launch: a histogram in the shared memory of whole clusters',
  async run(t) {
    needCapability(t, 'a cluster')
    const histogram = load(t, histogramPtx, 'histogram', ['ptr', 'u32', 'ptr', 'u32'])
    const length = t.random.integer(1, 50_000)
    for (const size of [1, 2, 4, 8]) {
      const share = t.random.integer(1, 64)
      const values = Uint32Array.from({ length }, () => t.random.integer(0, share * size - 1))
      const input = t.own(DeviceBuffer.from(t.device, values))
      const out = t.own(DeviceBuffer.zeros(t.device, 'u32', share * size))
      const kernel = histogram.with({ clusterDimension: size })
      kernel.launch({ grid: size * t.random.integer(1, 6), block: threads }, input, length, out, share)
      const expected = new Uint32Array(share * size)
      for (const value of values) expected[value] = (expected[value] as number) + 1
      assertSameBits(await out.toArray(), expected, `clusters of ${size}`)
    }
  },
}

const dependentLaunch: ConformanceCase = {
  name: 'programmatic dependent launch: kernels that begin before the one in front has ended',
  async run(t) {
    needCapability(t, 'a dependent launch')
    const kernel = load(t, dependentPtx, 'dependent', ['ptr', 'u32', 'u32', 'u32'])
    const early = kernel.with({ programmaticStreamSerialization: true })
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const length = t.random.integer(1, 200_000)
    const values = words(t, length)
    const data = t.own(DeviceBuffer.from(t.device, values))
    const steps = Array.from({ length: 20 }, () => [t.random.integer(0, 1000), t.random.integer(0, 1000)] as const)
    for (const [factor, summand] of steps) {
      early.launch({ grid: blocksFor(length), block: threads, stream }, data, length, factor, summand)
    }
    await stream.synchronize()
    const expected = values.map((value) =>
      steps.reduce((now, [factor, summand]) => (Math.imul(now, factor) + summand) >>> 0, value),
    )
    assertSameBits(await data.toArray(), expected, 'each step on the result of the one before')
  },
}

const unifiedStreams: ConformanceCase = {
  name: 'unified memory and streams: tasks on host and device, each with the memory of its stream',
  async run(t) {
    const kernel = load(t, productPtx, 'product', ['ptr', 'ptr', 'ptr', 'u32'])
    const streams = [0, 1, 2, 3].map(() => t.own(t.device.createStream({ nonBlocking: true })))
    for (let task = 0; task < 12; task += 1) {
      const stream = streams[task % streams.length] as (typeof streams)[number]
      const n = t.random.integer(1, 60)
      const make = (length: number): ManagedBuffer<'f32'> => {
        const buffer = t.own(ManagedBuffer.allocate(t.device, 'f32', length, { attach: 'host' }))
        for (let index = 0; index < length; index += 1) buffer.array[index] = t.random.integer(-8, 8)
        return buffer
      }
      const [matrix, x, y] = [make(n * n), make(n), make(n)]
      const given = [Float32Array.from(matrix.array), Float32Array.from(x.array)] as const
      const expected = Float32Array.from({ length: n }, (_, row) =>
        given[1].reduce((sum, value, column) => sum + value * (given[0][row * n + column] as number), 0),
      )
      const isOnHost = t.random.integer(0, 2) === 0
      for (const buffer of [matrix, x, y]) buffer.attachTo(stream, isOnHost ? 'host' : 'single')
      await stream.synchronize()
      if (isOnHost) y.array.set(expected)
      else kernel.launch({ grid: blocksFor(n), block: threads, stream }, matrix.memory, x.memory, y.memory, n)
      await stream.synchronize()
      assertSameBits(Float32Array.from(y.array), expected, `a product of ${n} × ${n}`)
    }
  },
}

/**
 * Programs that do the same as NVIDIA's samples with this package. Other suites already cover conditional graphs, pools
 * and mapped memory shared between processes, occupancy, layered textures, and linked PTX.
 */
export const sampleSuites: readonly Suite[] = [
  {
    name: 'samples',
    cases: [
      simpleGraphs,
      graphMemory,
      mappedVectors,
      peerToPeer,
      cooperative,
      clusterHistogram,
      dependentLaunch,
      unifiedStreams,
    ],
  },
]
