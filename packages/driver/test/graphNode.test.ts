import { DisposedError, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { add, choose, countDown, device, firstOf, one, other, stream, zeros } from './support/graphObjects.js'

const { DeviceBuffer, Event } = await import('@shoal/driver')
const { emptyNode, eventRecordNode, eventWaitNode, fillNode, Graph, kernelNode, memoryOperationsNode } = await import(
  '@shoal/driver/graph'
)

describe('graph nodes', () => {
  test('record events and wait for them', async () => {
    using event = Event.create(device)
    using sum = zeros()
    using recording = Graph.create(device)
    recording.add(eventRecordNode(event), { dependencies: [recording.add(kernelNode(add, one, sum, 1))] })
    using waiting = Graph.create(device)
    waiting.add(kernelNode(add, one, sum, 10), { dependencies: [waiting.add(eventWaitNode(event))] })
    using first = recording.instantiate()
    using last = waiting.instantiate()
    first.launch(stream)
    last.launch(other)
    await Promise.all([event.synchronize(), other.synchronize()])
    expect(firstOf(sum)).toBe(11)
  })

  test('write and wait for words, also between branches', async () => {
    using words = DeviceBuffer.zeros(device, 'u64', 2)
    const [low, high] = [words.slice(0, 1), words.slice(1, 2)]
    using graph = Graph.create(device)
    graph.add(
      memoryOperationsNode([
        { operation: 'wait', memory: low, value: 5 },
        { operation: 'write', memory: high, value: 2n ** 63n },
      ]),
    )
    graph.add(memoryOperationsNode([{ operation: 'write', memory: low, value: 5 }]))
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect([...words.toArraySync()]).toEqual([5n, 2n ** 63n])
    expect(() => memoryOperationsNode([])).toThrow('memoryOperationsNode: operations must be 1 to 256 operations')
    expect(() => memoryOperationsNode([{ operation: 'write', memory: words, value: 1 }])).toThrow(
      'operations[0].memory',
    )
    expect(() => memoryOperationsNode([{ operation: 'write', memory: low, value: -1 }])).toThrow('operations[0].value')
    expect(() => memoryOperationsNode([{ operation: 'read' as never, memory: low, value: 1 }])).toThrow(
      'operations[0].operation',
    )
    expect(() => stream.memoryOperations([{ operation: 'wait', memory: low, value: -1 }])).toThrow(
      'Stream.memoryOperations: operations[0].value must be',
    )
    expect(() => stream.writeValue(words, 1)).toThrow('Stream.writeValue: memory must be memory of 4 or 8 bytes')
    expect(() => stream.writeValue(low, -1)).toThrow('Stream.writeValue: value must be an integer')
    expect(() => stream.waitValue(low, 1, 'lt' as never)).toThrow('Stream.waitValue: condition must be')
  })

  test('run a child graph', async () => {
    using sum = zeros()
    using inner = Graph.create(device)
    inner.add(kernelNode(add, one, sum, 3), { dependencies: [inner.add(kernelNode(add, one, sum, 4))] })
    using graph = Graph.create(device)
    const child = graph.addGraph(inner)
    graph.addGraph(inner, { dependencies: [child] })
    expect(child.type).toBe('graph')
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(14)
  })

  test('can be removed, and edges too', () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const [first, last] = [graph.add(fillNode(sum, 1)), graph.add(fillNode(sum, 2))]
    graph.addDependency(first, last)
    expect(() => graph.addDependency(last, first)).toThrow(StatusError)
    expect(graph.edges).toHaveLength(1)
    graph.removeDependency(first, last)
    expect([graph.edges, graph.rootNodes]).toEqual([[], [first, last]])
    first.remove()
    expect(graph.nodes).toEqual([last])
    expect(() => first.dependencies).toThrow(DisposedError)
    using foreign = Graph.create(device)
    expect(() => foreign.add(emptyNode(), { dependencies: [last] })).toThrow(
      'Graph.add: dependencies[0] must be a node of this graph',
    )
  })
})

describe('conditional nodes', () => {
  test('while: repeats its body until a kernel clears the condition', async () => {
    using left = zeros()
    using sum = zeros()
    using graph = Graph.create(device)
    const { handle, bodies } = graph.addConditional({ type: 'while', defaultValue: 1 })
    const [body] = bodies as [import('@shoal/driver/graph').Graph]
    body.add(kernelNode(add, one, sum, 2), { dependencies: [body.add(kernelNode(countDown, one, handle, left))] })
    using step = graph.instantiate()
    for (const turns of [3, 1]) {
      left.fill(turns, { stream })
      step.launch(stream)
      await stream.synchronize()
    }
    expect([firstOf(left), firstOf(sum)]).toEqual([0, 8])
    graph.dispose()
    expect(() => body.nodes).toThrow(DisposedError)
  })

  test('if and switch: run the body that the condition selects', async () => {
    for (const [type, size, value, expected] of [
      ['if', 1, 0, 0],
      ['if', 1, 5, 1],
      ['if', 2, 0, 10],
      ['switch', 3, 2, 100],
      ['switch', 3, 7, 0],
    ] as const) {
      using sum = zeros()
      using graph = Graph.create(device)
      const { node, handle, bodies } = graph.addConditional({ type, size })
      const decide = graph.add(kernelNode(choose, one, handle, value))
      graph.addDependency(decide, node)
      for (const [index, body] of bodies.entries()) body.add(kernelNode(add, one, sum, 10 ** index))
      using step = graph.instantiate()
      step.launch(stream)
      await stream.synchronize()
      expect(firstOf(sum), `${type} ${size} ${value}`).toBe(expected)
    }
    using graph = Graph.create(device)
    expect(() => graph.addConditional({ type: 'while', size: 2 })).toThrow(RangeError)
    expect(() => graph.addConditional({ type: 'unless' as never })).toThrow('Graph.addConditional: type must be')
  })
})
