import assert from 'node:assert/strict'
import { CUresult, cuDevicePrimaryCtxReset } from '@shoal/cuda-sys/driver'
import { type Context, DeviceBuffer, DisposedError, Event, Module, Stream } from '@shoal/driver'
import {
  CreatedContext,
  currentContext,
  DeviceResource,
  GreenContext,
  popContext,
  pushContext,
} from '@shoal/driver/context'
import { Graph } from '@shoal/driver/graph'
import type { CaseContext, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

/** Each block delays, then writes the multiprocessor that it runs on. */
const ptx = `.version 7.0
.target sm_70
.address_size 64
.visible .entry whereabouts(.param .u64 out) {
  .reg .pred %p<2>;
  .reg .b64 %rd<6>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %smid;
  mov.u64 %rd4, %clock64;
  add.s64 %rd4, %rd4, 2000;
wait:
  mov.u64 %rd5, %clock64;
  setp.lt.s64 %p1, %rd5, %rd4;
  @%p1 bra wait;
  st.global.u32 [%rd3], %r2;
  ret;
}
`

/** Splits the device into parts that each have some of its multiprocessors. */
function parts(t: CaseContext) {
  const all = DeviceResource.of(t.device)
  const { groups, remaining } = all.split(Math.max(1, Math.floor(all.multiprocessors / 4)), { groups: 2 })
  if (groups.length < 2) t.skip(`this device has only ${all.multiprocessors} multiprocessors to share out`)
  return { all, groups, remaining }
}

export const partitionSuite: Suite = {
  name: 'driver contexts and parts of a device',
  cases: [
    {
      name: 'the multiprocessors of a device are split, and none is in two parts or lost',
      run(t) {
        const { all, groups, remaining } = parts(t)
        assert.equal(all.multiprocessors, t.device.attribute('MULTIPROCESSOR_COUNT'))
        const sizes = groups.map(({ multiprocessors }) => multiprocessors)
        const sum = sizes.reduce((total, size) => total + size, remaining?.multiprocessors ?? 0)
        assert.equal(sum, all.multiprocessors)
        for (const size of sizes) assert(size >= Math.max(1, Math.floor(all.multiprocessors / 4)))
        assert.throws(() => all.split(all.multiprocessors + 1), RangeError)
        assert.throws(() => all.split(0), RangeError)
      },
    },
    {
      name: 'the primary context of a device with a green context is not reset',
      run(t) {
        const { groups } = parts(t)
        const green = t.own(GreenContext.create(groups[0] as DeviceResource))
        // The raw driver call is for code that does not know the green context. `Device.reset` would end the green
        // context first.
        assert.equal(cuDevicePrimaryCtxReset(t.device.handle), CUresult.CUDA_ERROR_NOT_PERMITTED)
        assert.equal(green.disposed, false)
        DeviceBuffer.zeros(t.device, 'u8', 16).dispose()
      },
    },
    {
      name: 'kernels of a green context run on its part alone, and use all memory, kernels and events of the device',
      async run(t) {
        const { groups } = parts(t)
        const kernel = t.own(Module.loadSync(t.device, ptx)).kernel('whereabouts', ['ptr'])
        const seen: Set<number>[] = []
        for (const part of groups) {
          const green = t.own(GreenContext.create(part))
          assert.equal(green.resource.multiprocessors, part.multiprocessors)
          const stream = t.own(green.createStream())
          const blocks = 4 * t.device.attribute('MULTIPROCESSOR_COUNT')
          const out = t.own(DeviceBuffer.zeros(t.device, 'u32', blocks))
          out.fill(0xffff_ffff, { stream })
          kernel.launch({ grid: blocks, block: 32, stream }, out)
          const event = t.own(stream.record())
          await event.synchronize()
          const places = new Set(await out.toArray({ stream }))
          assert(places.size <= part.multiprocessors, `${places.size} of ${part.multiprocessors} multiprocessors`)
          assert(!places.has(0xffff_ffff))
          seen.push(places)
        }
        const [first, second] = seen as [Set<number>, Set<number>]
        assert.deepEqual(
          [...first].filter((place) => second.has(place)),
          [],
        )
      },
    },
    {
      name: 'copies, fills, events and graphs work on streams of a green context',
      async run(t) {
        const { groups } = parts(t)
        const green = t.own(GreenContext.create(groups))
        const stream = t.own(green.createStream({ priority: t.device.streamPriorityRange.greatest }))
        const plain = t.own(t.device.createStream({ nonBlocking: true }))
        const values = Float32Array.from({ length: 5000 }, (_, index) => index)
        const memory = t.own(DeviceBuffer.zeros(t.device, 'f32', 5000))
        memory.copyFrom(values, { stream })
        assertSameBits(await memory.toArray({ stream }), values, 'a copy')
        memory.fill(2, { stream })
        plain.waitEvent(t.own(stream.record()))
        assertSameBits(await memory.toArray({ stream: plain }), new Float32Array(5000).fill(2), 'a fill')
        const graph = t.own(Graph.capture(stream, () => void memory.fill(3, { stream })))
        const exec = t.own(graph.instantiate())
        exec.launch(stream)
        assertSameBits(await memory.toArray({ stream }), new Float32Array(5000).fill(3), 'a graph')
        const event = t.own(Event.create(t.device))
        green.record(event)
        await event.synchronize()
        green.waitEvent(event)
        t.device.primaryContext.record(event)
        await event.synchronize()
        assert(stream.query())
        assert.equal(typeof green.id, 'bigint')
      },
    },
    {
      name: 'a stream that outlives its green context says so, and is disposed of all the same',
      async run(t) {
        const green = GreenContext.create(DeviceResource.of(t.device))
        const stream = t.own(green.createStream())
        const memory = t.own(DeviceBuffer.zeros(t.device, 'u8', 4))
        memory.fill(1, { stream })
        await stream.synchronize()
        green.dispose()
        assert.throws(() => memory.fill(1, { stream }), DisposedError)
        assert.throws(() => stream.query(), DisposedError)
        await assert.rejects(stream.synchronize(), DisposedError)
        assert.throws(() => green.createStream(), DisposedError)
        assert.deepEqual([...memory.toArraySync()], [1, 1, 1, 1])
      },
    },
    {
      name: 'a context beside the primary one has memory, streams and kernels of its own',
      async run(t) {
        const before = currentContext()
        const context = CreatedContext.create(t.device, { scheduling: 'blocking' })
        assert.equal(currentContext()?.handle, before?.handle)
        assert.equal(context.flags.scheduling, 'blocking')
        assert.notEqual(context.id, t.device.primaryContext.id)
        {
          using stream = Stream.create(context, { nonBlocking: true })
          using module = Module.loadSync(context as Context, ptx)
          using out = DeviceBuffer.zeros(context, 'u32', 64)
          out.fill(0xffff_ffff, { stream })
          module.kernel('whereabouts', ['ptr']).launch({ grid: 64, block: 32, stream }, out)
          assert((await out.toArray({ stream })).every((place) => place < t.device.attribute('MULTIPROCESSOR_COUNT')))
          using event = Event.create(context)
          context.record(event)
          await event.synchronize()
          context.waitEvent(event)
          await stream.synchronize()
        }
        const lasting = DeviceBuffer.from(context, Int32Array.of(5))
        context.dispose()
        assert.throws(() => Stream.create(context), DisposedError)
        assert.deepEqual([...lasting.toArraySync()], [5])
        lasting.disposeSync()
        assert(context.disposed)
        assert.throws(() => context.handle, DisposedError)
      },
    },
    {
      name: 'contexts are pushed and popped, and settings are kept for each',
      run(t) {
        const before = currentContext()?.handle
        const context = t.own(CreatedContext.create(t.device))
        pushContext(context)
        pushContext(t.device)
        assert.equal(currentContext()?.handle, t.device.primaryContext.handle)
        assert.equal(popContext().handle, t.device.primaryContext.handle)
        assert.equal(popContext().handle, context.handle)
        assert.equal(currentContext()?.handle, before)
        context.setFlags({ scheduling: 'yield' })
        assert.equal(context.flags.scheduling, 'yield')
        context.cacheConfig = 'l1'
        assert.equal(context.cacheConfig, 'l1')
        assert.throws(() => {
          context.cacheConfig = 'l3' as never
        }, TypeError)
        assert.throws(() => context.setFlags({ scheduling: 'fast' as never }), TypeError)
      },
    },
    {
      name: 'attributes of a stream are set, read and taken over',
      run(t) {
        const one = t.own(t.device.createStream({ nonBlocking: true }))
        const other = t.own(t.device.createStream({ nonBlocking: true }))
        const memory = t.own(DeviceBuffer.zeros(t.device, 'u8', 4096))
        one.setAttributes({
          synchronizationPolicy: 'yield',
          accessPolicyWindow: { memory, hitRatio: 0.5, hit: 'persisting', miss: 'streaming' },
        })
        for (const stream of [one, other.copyAttributes(one)]) {
          const { synchronizationPolicy, accessPolicyWindow } = stream.attributes
          assert.equal(synchronizationPolicy, 'yield')
          assert.deepEqual(accessPolicyWindow, {
            address: memory.address,
            byteLength: 4096,
            hitRatio: 0.5,
            hit: 'persisting',
            miss: 'streaming',
          })
        }
        assert.throws(() => one.setAttributes({ synchronizationPolicy: 'often' as never }), TypeError)
      },
    },
  ],
}
