import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, MemoryPool, Module } = await import('@shoal/driver')
const { Graph, kernelNode } = await import('@shoal/driver/graph')

const device = Device.get(0)
const second = Device.get(1)
const ptx = `.version 8.0
.target sm_80
.address_size 64
.visible .entry seven(.param .u64 at) {
  .reg .u64 %a;
  ld.param.u64 %a, [at];
  st.global.u32 [%a], 7;
  ret;
}`
const one = { grid: 1, block: 1 }

afterAll(() => {
  for (const each of Device.all()) each.dispose()
})

/** Ways to run a kernel on memory. */
const ways = {
  launch: (module: import('@shoal/driver').Module, memory: import('@shoal/driver').DeviceBuffer, stream: Stream) =>
    module.kernel('seven', ['ptr']).launch({ ...one, stream }, memory),
  prepare: (module: import('@shoal/driver').Module, memory: import('@shoal/driver').DeviceBuffer, stream: Stream) =>
    module
      .kernel('seven', ['ptr'])
      .prepare({ ...one, stream }, memory)
      .launch(),
  kernelNode: (
    module: import('@shoal/driver').Module,
    memory: import('@shoal/driver').DeviceBuffer,
    stream: Stream,
  ) => {
    using graph = Graph.create(stream.device as never)
    graph.add(kernelNode(module.kernel('seven', ['ptr']), one, memory))
    using step = graph.instantiate()
    step.launch(stream)
  },
}
type Stream = import('@shoal/driver').Stream

describe.each(Object.entries(ways))('a kernel by %s', (_, run) => {
  test.each([
    ['host', { location: 'host' }, false],
    ['a node of the host', { location: { hostNode: 0 } }, false],
    ['managed', { managed: true }, true],
    ['device', {}, false],
  ] as const)('uses memory of a %s pool on each device with access', (_kind, options, everywhere) => {
    using pool = MemoryPool.create(device, options)
    using made = device.createStream()
    using memory = pool.allocate(made, 'u32', 3)
    made.synchronizeSync()
    for (const on of [device, second]) {
      using module = Module.loadSync(on, ptx)
      using stream = on.createStream()
      const attempt = (): void => {
        memory.fillSync(0, { stream: made })
        run(module, memory, stream)
        stream.synchronizeSync()
        expect(memory.toArraySync({ stream: made })).toEqual(Uint32Array.of(7, 0, 0))
      }
      if (on === device || everywhere) attempt()
      else {
        expect(attempt).toThrow(
          /must be memory that device 1, where the kernel runs, can use, .* pool grants it access$/,
        )
        pool.setAccess(on, 'readWrite')
        attempt()
        pool.setAccess(on, 'none')
        expect(attempt).toThrow(TypeError)
      }
    }
  })
})
