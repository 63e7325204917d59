import assert from 'node:assert/strict'
import { type Device, DeviceBuffer, Module, StatusError } from '@shoal/driver'
import { Graph, kernelNode } from '@shoal/driver/graph'
import { Library, Linker, moduleLoadingMode } from '@shoal/driver/library'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

/** `scale` multiplies each element by `factor` and counts its threads in `threads`. All devices share `threads`. */
export const scalePtx = `.version 7.8
.target sm_75
.address_size 64
.visible .const .align 4 .f32 factor = 0f40400000;
.visible .global .attribute(.managed) .align 4 .u32 threads = 0;
.visible .entry scale(.param .u64 data, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<7>;
  .reg .b64 %rd<6>;
  .reg .f32 %f<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  ld.const.f32 %f2, [factor];
  mul.rn.f32 %f3, %f1, %f2;
  st.global.f32 [%rd4], %f3;
  mov.u64 %rd5, threads;
  atom.global.add.u32 %r6, [%rd5], 1;
DONE:
  ret;
}
.visible .entry nothing() { ret; }
`

async function scaled(t: CaseContext, library: Library, device: Device, factor: number): Promise<void> {
  const stream = t.own(device.createStream({ nonBlocking: true }))
  const count = t.random.integer(1, 5000)
  const values = Float32Array.from({ length: count }, () => t.random.integer(-1000, 1000))
  const memory = t.own(DeviceBuffer.from(device, values))
  const scale = library.kernel('scale', ['ptr', 'u32'])
  scale.launch({ grid: Math.ceil(count / 128), block: 128, stream }, memory, count)
  await stream.synchronize()
  const expected = values.map((value) => Math.fround(value * factor))
  assertSameBits(await memory.toArray(), expected, `${count} elements on device ${device.ordinal}`)
}

const kernels: ConformanceCase = {
  name: 'kernels of a library: by name, listed, with parameters and attributes; launched, in a graph',
  async run(t) {
    const library = t.own(await Library.load(t.device, scalePtx))
    assert.equal(library.kernelCount, 2)
    assert.deepEqual([...library.kernelNames].sort(), ['nothing', 'scale'])
    assert.deepEqual(library.parameters('scale'), [
      { offset: 0, bytes: 8 },
      { offset: 8, bytes: 4 },
    ])
    assert.deepEqual(library.parameters('nothing'), [])
    assert.equal(library.kernelHandle('scale'), library.kernelHandle('scale'))
    assert.ok(['eager', 'lazy'].includes(moduleLoadingMode()))
    await scaled(t, library, t.device, 3)
    assert.throws(() => library.kernel('scale', ['ptr']), TypeError)
    assert.throws(() => library.kernel('none', []), StatusError)
    assert.ok(library.kernelAttribute('scale', 'NUM_REGS') > 0)
    library.setKernelAttribute('nothing', 'PREFERRED_SHARED_MEMORY_CARVEOUT', 25)
    assert.equal(library.kernelAttribute('nothing', 'PREFERRED_SHARED_MEMORY_CARVEOUT'), 25)

    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const memory = t.own(DeviceBuffer.from(t.device, Float32Array.of(1, 2, 4)))
    const graph = t.own(Graph.create(t.device))
    graph.add(kernelNode(library.kernel('scale', ['ptr', 'u32']), { grid: 1, block: 32 }, memory, 3))
    const exec = t.own(graph.instantiate())
    exec.launch(stream)
    exec.launch(stream)
    await stream.synchronize()
    assertSameBits(await memory.toArray(), Float32Array.of(9, 18, 36), 'twice by a graph')
  },
}

const variables: ConformanceCase = {
  name: 'variables of a library: constants of each device, managed ones of all',
  async run(t) {
    const library = t.own(await Library.load(t.device, scalePtx))
    const factor = library.global('factor', 'f32')
    assertSameBits(await factor.toArray(), Float32Array.of(3), 'as the image has it')
    await factor.copyFrom(Float32Array.of(5))
    await t.device.primaryContext.synchronize()
    await scaled(t, library, t.device, 5)
    assert.throws(() => library.global('none'), StatusError)
    if (t.device.attribute('CONCURRENT_MANAGED_ACCESS') === 0) return
    const { array } = library.managed('threads', 'u32')
    const before = array[0] as number
    assert.ok(before > 0)
    await scaled(t, library, t.device, 5)
    assert.ok((array[0] as number) > before)
  },
}

const devices: ConformanceCase = {
  name: 'a library on two devices, loaded once',
  requires: { devices: 2 },
  async run(t) {
    const [one, two] = t.devices as [Device, Device]
    const library = t.own(await Library.load(one, scalePtx, { preserveImage: true }))
    const there = library.on(two)
    await library.global('factor', 'f32').copyFrom(Float32Array.of(7))
    await one.primaryContext.synchronize()
    await scaled(t, library, one, 7)
    await scaled(t, there, two, 3)
    assert.equal(there.kernelHandle('scale'), library.kernelHandle('scale'))
  },
}

const caller = `.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 result) weigh(.param .b32 value);
.func (.param .b32 result) own(.param .b32 value) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  add.u32 %r2, %r1, 1000;
  st.param.b32 [result], %r2;
  ret;
}
.visible .entry run(.param .u64 out, .param .u32 value) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call.uni (b), weigh, (a);
    ld.param.b32 %r2, [b]; }
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r2;
    call.uni (b), own, (a);
    ld.param.b32 %r3, [b]; }
  st.global.u32 [%rd2], %r3;
  ret;
}
`

const callee = `.version 7.8
.target sm_75
.address_size 64
.func (.param .b32 result) own(.param .b32 value) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  mul.lo.u32 %r2, %r1, 7;
  st.param.b32 [result], %r2;
  ret;
}
.visible .func (.param .b32 result) weigh(.param .b32 value) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call.uni (b), own, (a);
    ld.param.b32 %r2, [b]; }
  st.param.b32 [result], %r2;
  ret;
}
`

const linking: ConformanceCase = {
  name: 'PTX of two sources, linked',
  async run(t) {
    const value = t.random.integer(0, 1000)
    for (const inputs of [
      [caller, callee],
      [callee, caller],
    ]) {
      const linker = t.own(Linker.create(t.device))
      for (const [index, input] of inputs.entries()) linker.add(input, { name: `source ${index}` })
      const module = t.own(await Module.load(t.device, await linker.complete()))
      const out = t.own(DeviceBuffer.zeros(t.device, 'u32', 1))
      module.kernel('run', ['ptr', 'u32']).launch({ grid: 1, block: 1 }, out, value)
      await t.device.primaryContext.synchronize()
      assertSameBits(
        await out.toArray(),
        Uint32Array.of(value * 7 + 1000),
        'the kernel of one, the function of the other',
      )
    }
    const alone = t.own(Linker.create(t.device)).add(caller)
    await assert.rejects(
      alone.complete(),
      (error: Error) => error instanceof StatusError && /weigh/.test(error.message),
    )
  },
}

export const librarySuite: Suite = { name: 'driver: libraries', cases: [kernels, variables, devices, linking] }
