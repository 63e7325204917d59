import { expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { Device, DeviceBuffer, Module, Stream } = await import('@shoal/driver')
const { DeviceResource, GreenContext } = await import('@shoal/driver/context')
const { Graph } = await import('@shoal/driver/graph')

const device = Device.get(0)

/** Each block writes the number of its multiprocessor. */
const whereabouts = `.version 8.0
.target sm_70
.address_size 64
.visible .entry whereabouts(.param .u64 out) {
  .reg .b64 %rd<4>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %smid;
  st.global.u32 [%rd3], %r2;
  ret;
}
`

test('a green context runs kernels only on its part of the device, and uses all of its memory', async () => {
  const module = Module.loadSync(device, whereabouts)
  const kernel = module.kernel('whereabouts', ['ptr'])
  const { groups } = DeviceResource.of(device).split(2)
  const seen: Set<number>[] = []
  for (const part of groups) {
    using green = GreenContext.create(part)
    expect(green.resource.multiprocessors).toBe(2)
    using stream = green.createStream()
    using out = DeviceBuffer.zeros(device, 'u32', 64)
    kernel.launch({ grid: 64, block: 32, stream }, out)
    seen.push(new Set(await out.toArray({ stream })))
    // A graph of the stream's work runs there too, on whatever stream it is launched.
    using graph = Graph.capture(stream, () => kernel.launch({ grid: 64, block: 32, stream }, out))
    using exec = graph.instantiate()
    using plain = Stream.create(device, { nonBlocking: true })
    exec.launch(plain)
    expect(new Set(await out.toArray({ stream: plain }))).toEqual(seen.at(-1))
  }
  expect(seen.map(({ size }) => size)).toEqual([2, 2])
  expect(new Set(seen.flatMap((part) => [...part])).size).toBe(4)
  // Two parts together have all their multiprocessors.
  using both = GreenContext.create(groups)
  using stream = both.createStream()
  using out = DeviceBuffer.zeros(device, 'u32', 64)
  kernel.launch({ grid: 64, block: 32, stream }, out)
  expect(new Set(await out.toArray({ stream })).size).toBe(4)
  module.dispose()
})
