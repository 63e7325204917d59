import { DisposedError } from '@shoal/types'
import { expect, test } from 'vitest'
import { add, device, one, stream, zeros } from './support/graphObjects.js'

const { DeviceBuffer, Event, PinnedBuffer } = await import('@shoal/driver')
const {
  copyNode,
  emptyNode,
  eventRecordNode,
  eventWaitNode,
  fillNode,
  Graph,
  hostNode,
  kernelNode,
  memoryOperationsNode,
  nodeParameters,
} = await import('@shoal/driver/graph')
const { CudaArray } = await import('@shoal/driver/texture')
const { Library } = await import('@shoal/driver/library')

test('nodeParameters() returns the parameters of every kind of added node', () => {
  using memory = zeros(8)
  using host = PinnedBuffer.allocate(device, 'u32', 8)
  using array = CudaArray.create(device, { width: 4, height: 2, format: 'u32' })
  using event = Event.create(device)
  using graph = Graph.create(device)
  const of = (description: Parameters<typeof graph.add>[0]) => nodeParameters(graph.add(description))
  const kernel = kernelNode(add, { grid: [3, 2], block: [4, 1, 2], sharedMemory: 64 }, memory, 1)
  expect(of(kernel)).toEqual({ type: 'kernel', name: 'add', grid: [3, 2, 1], block: [4, 1, 2], sharedMemory: 64 })
  const linear = { isArray: false, x: 0, y: 0, z: 0, pitch: 0, rows: 0 }
  expect(of(copyNode(host, memory))).toEqual({
    type: 'memcpy',
    source: { ...linear, handle: memory.address },
    target: { ...linear, handle: host.address },
    extent: [32, 1, 1],
  })
  expect(of(copyNode(array, memory.slice(0, 2), { region: { x: 1, y: 1, width: 2 } }))).toEqual({
    type: 'memcpy',
    source: { ...linear, handle: memory.address, pitch: 8, rows: 1 },
    target: { ...linear, isArray: true, handle: array.handle, x: 4, y: 1 },
    extent: [8, 1, 1],
  })
  expect(of(fillNode(memory, 0x01020304))).toEqual({
    type: 'memset',
    address: memory.address,
    value: 0x01020304,
    elementBytes: 4,
    width: 8,
    height: 1,
    pitch: 0,
  })
  expect(of(eventRecordNode(event))).toEqual({ type: 'event-record', eventHandle: event.handle })
  expect(of(eventWaitNode(event))).toEqual({ type: 'wait-event', eventHandle: event.handle })
  expect(of(memoryOperationsNode([{ operation: 'write', memory: memory.slice(0, 1), value: 3 }]))).toEqual({
    type: 'batch-mem-op',
    count: 1,
  })
  expect(of(emptyNode())).toEqual({ type: 'empty' })
  expect(of(hostNode(() => undefined))).toEqual({ type: 'host' })
  const { node, memory: own } = graph.allocate('u32', 100)
  expect(nodeParameters(node)).toEqual({ type: 'mem-alloc', address: own.address, byteLength: 400 })
  expect(nodeParameters(graph.free(own, { dependencies: [node] }))).toEqual({ type: 'mem-free', address: own.address })
  const conditional = graph.addConditional({ type: 'if' })
  expect(nodeParameters(conditional.node)).toEqual({ type: 'conditional' })
})

test('nodeParameters() also describes captured nodes, nodes of child graphs, and library kernels', () => {
  using memory = DeviceBuffer.zeros(device, 'u16', 6)
  using captured = Graph.capture(stream, () => memory.fill(7, { stream }))
  expect(nodeParameters(captured.nodes[0] as never)).toMatchObject({
    type: 'memset',
    value: 7,
    elementBytes: 2,
    width: 6,
  })
  using graph = Graph.create(device)
  const child = nodeParameters(graph.addGraph(captured))
  if (child.type !== 'graph') throw new Error(child.type)
  expect(child.graph.nodes.map(nodeParameters)).toMatchObject([{ type: 'memset', address: memory.address }])
  using library = Library.loadSync(
    device,
    '.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n',
  )
  const node = graph.add(kernelNode(library.kernel('nothing', []), one))
  expect(nodeParameters(node)).toMatchObject({ type: 'kernel', name: 'nothing' })
  node.remove()
  expect(() => nodeParameters(node)).toThrow(DisposedError)
  expect(() => nodeParameters(graph as never)).toThrow(/nodeParameters: node must be/)
  graph.dispose()
  expect(() => child.graph.nodes).toThrow(DisposedError)
})
