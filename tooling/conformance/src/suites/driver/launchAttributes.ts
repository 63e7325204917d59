import assert from 'node:assert/strict'
import { DeviceBuffer, Event, Module, StatusError } from '@shoal/driver'
import { Graph, kernelNode } from '@shoal/driver/graph'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

/** Each block writes its index in its cluster, and the number of blocks in the cluster. */
const ptx = `.version 7.8
.target sm_90
.address_size 64
.visible .entry place(.param .u64 out) {
  .reg .b64 %rd<5>;
  .reg .b32 %r<5>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd4, %rd1;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 8;
  add.s64 %rd3, %rd4, %rd2;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %cluster_nctarank;
  st.global.u32 [%rd3], %r2;
  st.global.u32 [%rd3+4], %r3;
  ret;
}
`

function load(t: CaseContext) {
  const { major } = t.device.computeCapability
  if (major < 9) t.skip(`clusters need compute capability 9.0, not ${major}`)
  return t.own(Module.loadSync(t.device, ptx)).kernel('place', ['ptr'])
}

function places(blocks: number, size: number): Uint32Array {
  return Uint32Array.from({ length: blocks * 2 }, (_, at) => (at % 2 === 0 ? (at / 2) % size : size))
}

const clusters: ConformanceCase = {
  name: 'clusters: launched, prepared, in a graph, and as many as the device says',
  async run(t) {
    const place = load(t)
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    for (const size of [1, 2, 4, 8]) {
      const kernel = place.with({ clusterDimension: size })
      const blocks = size * t.random.integer(1, 20)
      const out = t.own(DeviceBuffer.zeros(t.device, 'u32', blocks * 2))
      const config = { grid: blocks, block: 32, stream }
      const graph = t.own(Graph.create(t.device))
      graph.add(kernelNode(kernel, { grid: blocks, block: 32 }, out))
      const exec = t.own(graph.instantiate())
      const ways = {
        launched: () => kernel.launch(config, out),
        prepared: () => kernel.prepare(config, out).launch(),
        node: () => exec.launch(stream),
      }
      for (const [way, launch] of Object.entries(ways)) {
        out.fill(99, { stream })
        launch()
        await stream.synchronize()
        assertSameBits(await out.toArray(), places(blocks, size), `clusters of ${size}, ${way}`)
      }
      assert(kernel.maxActiveClusters({ grid: blocks, block: 32 }) > 0)
    }
    assert(place.potentialClusterSize({ grid: 64, block: 128 }) >= 8)
    const odd = place.with({ clusterDimension: 4 })
    assert.throws(() => odd.launch({ grid: 6, block: 32, stream }, null), StatusError)
  },
}

const others: ConformanceCase = {
  name: 'attributes of other kinds are taken, and events of a launch are recorded',
  async run(t) {
    const place = load(t)
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const event = t.own(Event.create(t.device))
    const window = t.own(DeviceBuffer.zeros(t.device, 'u8', 4096))
    const out = t.own(DeviceBuffer.zeros(t.device, 'u32', 16))
    const least = t.device.primaryContext.streamPriorityRange.greatest
    for (const attributes of [
      { cooperative: true },
      { priority: least },
      { programmaticStreamSerialization: true },
      { memorySynchronizationDomain: 'remote' },
      { sharedMemoryCarveout: 50 },
      { clusterDimension: 2, clusterSchedulingPolicy: 'spread' },
      { accessPolicyWindow: { memory: window, hitRatio: 0.5, hit: 'persisting', miss: 'streaming' } },
      { launchCompletionEvent: event },
    ] as const) {
      place.with(attributes).launch({ grid: 8, block: 32, stream }, out)
      await stream.synchronize()
      const size = 'clusterDimension' in attributes ? 2 : 1
      assertSameBits(await out.toArray(), places(8, size), Object.keys(attributes).join(', '))
    }
    assert(event.query())
  },
}

export const launchAttributeSuite: Suite = { name: 'driver: launch attributes', cases: [clusters, others] }
