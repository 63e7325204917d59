import { describe, expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const driver = await import('@shoal/driver')
const context = await import('@shoal/driver/context')
const dlpack = await import('@shoal/driver/dlpack')
const graphs = await import('@shoal/driver/graph')
const library = await import('@shoal/driver/library')
const memory = await import('@shoal/driver/memory')
const texture = await import('@shoal/driver/texture')
const { Device, DeviceBuffer, Event, elapsedMs, Kernel, Module, PinnedBuffer, Stream } = driver
const { Graph, kernelNode, UserObject } = graphs

const device = Device.get(0)
const stream = device.createStream()
const buffer = DeviceBuffer.zeros(device, 'f32', 4)
const ptx = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a) { ret; }\n'
const kernel = Module.loadSync(device, ptx).kernel('k', ['ptr'])
const one = { grid: 1, block: 1 }
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
])('%s names its %s when that only has the prototype of a class', (api, name, call) => {
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

describe('a class whose objects only its package makes', () => {
  const all: { readonly [name: string]: unknown } = {
    ...driver,
    ...context,
    ...dlpack,
    ...graphs,
    ...library,
    ...memory,
    ...texture,
  }
  const makers = [
    'Stream',
    'Event',
    'DeviceBuffer',
    'PinnedBuffer',
    'ManagedBuffer',
    'RegisteredBuffer',
    'PitchedBuffer',
  ]
  const others = ['AddressRange', 'PhysicalMemory', 'MemoryPool', 'Module', 'Library', 'Linker', 'Graph', 'GraphExec']
  const rest = [
    'CudaArray',
    'TextureObject',
    'TensorMap',
    'GreenContext',
    'CreatedContext',
    'DLPackCapsule',
    'DLPackTensor',
  ]

  test.each([...makers, ...others, ...rest])('%s says what to call instead of new', (name) => {
    const Made = all[name] as new (owner?: unknown) => object
    for (const make of [() => new Made(), () => new Made(device)]) {
      expect(make).toThrow(new RegExp(`^new ${name}: make it with \\w+.*, not with new$`))
    }
  })
})
