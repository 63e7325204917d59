import assert from 'node:assert/strict'
import { DeviceBuffer, defineStruct, Stream } from '@shoal/runtime'
import { Graph, kernelNode } from '@shoal/runtime/graph'
import { Library } from '@shoal/runtime/library'
import type { ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

/**
 * Element i is begin + i × step. Both are in a struct of 128 bytes. The kernel also writes the size of each block's
 * cluster.
 */
const ptx = (target: string) => `.version 7.8
.target ${target}
.address_size 64
.visible .entry ramp(.param .u64 out, .param .align 64 .b8 range[128], .param .f32 step) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  .reg .f32 %f<5>;
  ld.param.u64 %rd1, [out];
  ld.param.f32 %f1, [range];
  ld.param.u32 %r1, [range+4];
  ld.param.f32 %f2, [step];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  cvt.rn.f32.u32 %f3, %r5;
  fma.rn.f32 %f4, %f3, %f2, %f1;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.f32 [%rd4], %f4;
DONE:
  ret;
}
`

const clusterPtx = `${ptx('sm_90')}
.visible .entry size(.param .u64 out) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  mov.u32 %r2, %cluster_nctarank;
  st.global.u32 [%rd4], %r2;
  ret;
}
`

const Range = defineStruct('Range', { begin: 'f32', count: 'u32', rest: ['u32', 30] })
const rest = new Array<number>(30).fill(0)

const launches: ConformanceCase = {
  name: 'kernels of a library, with a struct of 128 bytes: launched, prepared, in a graph',
  async run(t) {
    const library = t.own(await Library.load(ptx('sm_75'), { device: t.device.ordinal }))
    const ramp = library.kernel('ramp', ['ptr', Range, 'f32'])
    const { parameters } = ramp
    assert.deepEqual(
      parameters.map(({ bytes }) => bytes),
      [8, 128, 4],
    )
    // An H200 reports 0, 48 and 176. It aligns the place in its constant memory, not the offset.
    assert(parameters.every(({ offset }, index) => index === 0 || offset > (parameters[index - 1]?.offset ?? 0)))
    const stream = t.own(Stream.create({ device: t.device.ordinal }))
    const count = t.random.integer(1, 3000)
    const begin = t.random.integer(-100, 100)
    const out = t.own(DeviceBuffer.zeros('f32', count, { device: t.device.ordinal }))
    const range = { begin, count, rest }
    const size = { grid: Math.ceil(count / 64), block: 64 }
    const graph = t.own(Graph.create({ device: t.device.ordinal }))
    graph.add(kernelNode(ramp, size, out, range, 0.25))
    const exec = t.own(graph.instantiate())
    const ways = {
      launched: () => ramp.launch({ ...size, stream }, out, range, 0.25),
      prepared: () => ramp.prepare({ ...size, stream }, out, range, 0.25).launch(),
      cooperative: () => ramp.with({ cooperative: true }).launch({ ...size, stream }, out, range, 0.25),
      node: () => exec.launch(stream),
    }
    const expected = Float32Array.from({ length: count }, (_, index) => begin + index * 0.25)
    for (const [way, launch] of Object.entries(ways)) {
      out.fill(0, { stream })
      launch()
      await stream.synchronize()
      assertSameBits(await out.toArray(), expected, way)
    }
    assert.ok(ramp.maxActiveBlocks(64) > 0)
    assert.deepEqual(library.kernelNames, ['ramp'])
  },
}

const clusters: ConformanceCase = {
  name: 'launches with clusters, by cudaLaunchKernelExC',
  async run(t) {
    const { major } = t.device.computeCapability
    if (major < 9) t.skip(`clusters need compute capability 9.0, not ${major}`)
    const library = t.own(await Library.load(clusterPtx, { device: t.device.ordinal }))
    const size = library.kernel('size', ['ptr'])
    const stream = t.own(Stream.create({ device: t.device.ordinal }))
    const out = t.own(DeviceBuffer.zeros('u32', 8, { device: t.device.ordinal }))
    for (const blocks of [1, 2, 4, 8]) {
      size.with({ clusterDimension: blocks }).launch({ grid: 8, block: 32, stream }, out)
      await stream.synchronize()
      assertSameBits(await out.toArray(), new Uint32Array(8).fill(blocks), `clusters of ${blocks}`)
    }
  },
}

export const librarySuite: Suite = { name: 'runtime: libraries', cases: [launches, clusters] }
