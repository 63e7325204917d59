import { inspect } from 'node:util'
import { DisposedError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { add, device, firstOf, one, second, stream, zeros } from './support/graphObjects.js'

const { Event } = await import('@shoal/driver')
const { fillNode, Graph, kernelNode } = await import('@shoal/driver/graph')

describe('GraphExec', () => {
  test('keeps its state while the graph changes, until it is updated', async () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const run = graph.add(kernelNode(add, one, sum, 1))
    using step = graph.instantiate()
    run.update(kernelNode(add, one, sum, 100))
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(1)
    expect(step.update(graph)).toEqual({ result: 'success', node: undefined })
    step.launch(stream)
    step.updateNode(run, kernelNode(add, one, sum, 1000))
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(1101)
    using different = graph.clone()
    different.findInClone(run).remove()
    expect(step.update(different)).toEqual({ result: 'topology-changed', node: undefined })
    different.add(fillNode(sum, 1))
    expect(step.update(different)).toMatchObject({ result: 'node-type-changed', node: { type: 'memset' } })
    expect(() => run.update(fillNode(sum, 1))).toThrow(
      'GraphNode.update: description must be of a kernel node, as this one is, not of a memset node',
    )
  })

  test('skips disabled nodes', async () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const [first, last] = [graph.add(kernelNode(add, one, sum, 1)), graph.add(kernelNode(add, one, sum, 10))]
    using step = graph.instantiate()
    expect([step.isEnabled(first), step.setEnabled(first, false).isEnabled(first), step.isEnabled(last)]).toEqual([
      true,
      false,
      true,
    ])
    step.launch(stream)
    step.setEnabled(first, true)
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(21)
    expect(() => step.setEnabled(first, 1 as never)).toThrow('GraphExec.setEnabled: enabled must be')
  })

  test('adds the described node even if reading the options adds another node', async () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const options = {
      get dependencies() {
        return [graph.add(fillNode(sum, 5))]
      },
    }
    const run = graph.add(kernelNode(add, one, sum, 2), options)
    expect([run.type, ...graph.nodes.map(({ type }) => type)].toSorted()).toEqual(['kernel', 'kernel', 'memset'])
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(7)
  })

  test('refuses launch attributes if the library has no call for them', () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const run = graph.add(kernelNode(add, one, sum, 1))
    using step = graph.instantiate()
    expect(() => step.updateNode(run, kernelNode(add.with({ priority: 0 }), one, sum, 2))).toThrow(
      /^GraphExec\.updateNode: description must have no launch attributes; use GraphNode\.update/,
    )
  })

  test('accepts only nodes of the graph it was instantiated from', () => {
    using sum = zeros()
    using graph = Graph.create(device)
    graph.add(fillNode(sum, 1))
    using other = Graph.create(device)
    const foreign = other.add(fillNode(sum, 1))
    using step = graph.instantiate()
    for (const call of [
      () => step.updateNode(foreign, fillNode(sum, 2)),
      () => step.setEnabled(foreign, false),
      () => step.isEnabled(foreign),
    ]) {
      expect(call).toThrow(/^GraphExec\.\w+: node must be of the graph that it was made of/)
    }
  })

  test('refuses to launch with disposed memory or events, and names the object', () => {
    const memory = zeros()
    using event = Event.create(device)
    using graph = Graph.create(device)
    graph.add(kernelNode(add, one, memory, 1))
    using step = graph.instantiate()
    using captured = Graph.capture(stream, () => {}).keep(event)
    using other = captured.instantiate()
    memory.dispose()
    event.dispose()
    expect(() => step.launch(stream)).toThrow('was disposed before GraphExec.launch')
    expect(() => graph.instantiate()).toThrow('was disposed before Graph.instantiate')
    expect(() => other.launch(stream)).toThrow('Event')
    expect(() => captured.keep(1 as never)).toThrow('Graph.keep: objects[0] must be')
    graph.dispose()
    expect(() => graph.nodes).toThrow(DisposedError)
    step.dispose()
    expect(() => step.launch(stream)).toThrow(DisposedError)
    using far = second.createStream()
    using empty = Graph.create(device)
    using emptyStep = empty.instantiate()
    expect(() => emptyStep.launch(far)).toThrow('GraphExec.launch: stream must be one of device 0')
  })

  test('uploads in advance, outlives its graph, and prints as one line', async () => {
    using sum = zeros()
    const graph = Graph.create(device)
    graph.add(kernelNode(add, one, sum, 4))
    using step = graph.instantiate()
    expect(inspect(graph)).toMatch(/^Graph \{ device: 0, handle: 0x[0-9a-f]+ \}$/)
    graph.dispose()
    step.upload(stream)
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(4)
    expect(inspect(step)).toMatch(/^GraphExec \{ device: 0, handle: 0x[0-9a-f]+ \}$/)
  })
})
