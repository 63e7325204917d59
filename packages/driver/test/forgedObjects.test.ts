import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const driver = await import('@shoal/driver')
const graphs = await import('@shoal/driver/graph')
const { Device, DeviceBuffer, Event, elapsedMs, Kernel, Module, PinnedBuffer, Stream } = driver
const { Graph, kernelNode, UserObject } = graphs

const device = Device.get(0)
const stream = device.createStream()
const buffer = DeviceBuffer.zeros(device, 'f32', 4)
const ptx = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a) { ret; }\n'
const kernel = Module.loadSync(device, ptx).kernel('k', ['ptr'])
const one = { grid: 1, block: 1 }
const proxied = <T extends object>(object: T): T => new Proxy(object, {})
const forged = (made: { readonly prototype: object }): never => Object.create(made.prototype) as never

test.each<[string, string, () => unknown]>([
  ['DeviceBuffer.copyFrom', 'stream', () => buffer.copyFrom(new Float32Array(4), { stream: forged(Stream) })],
  ['DeviceBuffer.copyFrom', 'source', () => buffer.copyFrom(forged(DeviceBuffer))],
  ['DeviceBuffer.copyFrom', 'source', () => buffer.copyFrom(forged(PinnedBuffer))],
  ['DeviceBuffer.zeros', 'owner', () => DeviceBuffer.zeros(forged(Device), 'f32', 4)],
  ['DeviceBuffer.zeros', 'owner', () => DeviceBuffer.zeros(forged(driver.Context), 'f32', 4)],
  ['Kernel.launch', 'stream', () => kernel.launch({ ...one, stream: forged(Stream) }, buffer)],
  ['Kernel.launch', 'args[0]', () => kernel.launch({ ...one, stream }, forged(DeviceBuffer))],
  ['Stream.record', 'event', () => stream.record(forged(Event))],
  ['Stream.waitEvent', 'event', () => stream.waitEvent(forged(Event))],
  ['elapsedMs', 'start', () => elapsedMs(forged(Event), forged(Event))],
  ['Stream.from', 'stream', () => Stream.from(device, forged(Stream))],
  ['Graph.capture', 'stream', () => Graph.capture(forged(Stream), () => undefined)],
  ['Graph.addGraph', 'graph', () => Graph.create(device).addGraph(forged(Graph))],
  ['kernelNode', 'kernel', () => kernelNode(forged(Kernel), one, buffer)],
  ['UserObject.retainBy', 'graph', () => UserObject.create(() => undefined).retainBy(forged(Graph))],
])('%s refuses by name a %s that only has the prototype of its class', (api, name, call) => {
  let error: unknown
  try {
    call()
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(TypeError)
  expect((error as Error).message).toMatch(/ not an object with only the prototype of \w+$/)
  expect((error as Error).message.startsWith(`${api}: ${name} must be `)).toBe(true)
})

test.each<[string, () => unknown]>([
  ['a stream that an operation takes', () => buffer.fill(1, { stream: proxied(stream) })],
  ['a stream that a launch takes', () => kernel.launch({ ...one, stream: proxied(stream) }, buffer)],
  ['the stream that is called', () => proxied(stream).synchronizeSync()],
  ['an event to record', () => stream.record(proxied(device.createEvent()))],
  ['an event to wait for', () => stream.waitEvent(proxied(device.createEvent()))],
  ['memory as an argument', () => kernel.launch(one, proxied(buffer))],
  ['the memory that is called', () => proxied(buffer).fill(1)],
  ['a device as owner', () => DeviceBuffer.zeros(proxied(device), 'f32', 4)],
  ['a context as owner', () => DeviceBuffer.zeros(proxied(device.primaryContext), 'f32', 4)],
  ['a stream to capture', () => Graph.capture(proxied(stream), () => undefined)],
  ['a graph to add', () => Graph.create(device).addGraph(proxied(Graph.create(device)))],
])('%s refuses a proxy by name', (_, call) => {
  expect(call).toThrow(/ must be .*not a proxy around an object of class \w+/)
})
