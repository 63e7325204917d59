import { expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, setDevice, Stream } = await import('@shoal/runtime')
const { copyNode, fillNode, Graph, graphMemoryUsage, resetGraphMemoryHigh, trimGraphMemory } = await import(
  '@shoal/runtime/graph'
)

test('graphs default to the current device', async () => {
  setDevice(1)
  using here = Graph.create()
  using there = Graph.create({ device: 0 })
  expect([here.context.device.ordinal, there.context.device.ordinal]).toEqual([1, 0])
  expect(here).toBeInstanceOf(Graph)
  setDevice(0)
})

test('work queued by streams of the runtime package is captured and launched', async () => {
  using stream = Stream.create({ nonBlocking: true })
  using memory = DeviceBuffer.zeros('i32', 3)
  using copy = DeviceBuffer.zeros('i32', 3)
  using graph = Graph.capture(stream, () => {
    memory.fill(-4, { stream })
    copy.copyFrom(memory, { stream })
  })
  using step = graph.instantiate()
  expect(await memory.toArray()).toEqual(Int32Array.of(0, 0, 0))
  step.launch(stream)
  await stream.synchronize()
  expect(await copy.toArray()).toEqual(Int32Array.of(-4, -4, -4))
})

test('nodes can be added by hand', async () => {
  using stream = Stream.create()
  using memory = DeviceBuffer.zeros('u8', 5)
  using copy = DeviceBuffer.zeros('u8', 5)
  using graph = Graph.create()
  graph.add(copyNode(copy, memory), { dependencies: [graph.add(fillNode(memory, 9))] })
  using step = graph.instantiate()
  step.launch(stream)
  await stream.synchronize()
  expect(await copy.toArray()).toEqual(new Uint8Array(5).fill(9))
})

test('graph memory is counted per device', async () => {
  using stream = Stream.create()
  resetGraphMemoryHigh()
  using graph = Graph.create()
  const { memory, node } = graph.allocate('u8', 1 << 16)
  graph.free(memory, { dependencies: [node] })
  using step = graph.instantiate()
  step.launch(stream)
  expect(graphMemoryUsage().used).toBeGreaterThanOrEqual(1 << 16)
  expect(graphMemoryUsage(1).used).toBe(0)
  await stream.synchronize()
  trimGraphMemory()
  expect(graphMemoryUsage()).toMatchObject({ used: 0, reserved: 0 })
  expect(() => graphMemoryUsage(9)).toThrow(RangeError)
  expect(() => Graph.create({ device: 'a' as never })).toThrow(TypeError)
})
