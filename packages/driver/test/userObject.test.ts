import { setTimeout as after } from 'node:timers/promises'
import { DisposedError, StatusError } from '@shoal/types'
import { afterAll, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { emptyNode, Graph, UserObject } = await import('@shoal/driver/graph')
const { Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
afterAll(() => device.dispose())

/** Creates an object and a record of whether its end was reported. */
function watched() {
  const ends: number[] = []
  const object = UserObject.create(() => ends.push(ends.length))
  return { object, ends }
}

async function untilTold(ends: readonly number[]): Promise<void> {
  while (ends.length === 0) await after(1)
}

test('a UserObject ends with its last holder: the object itself, a graph, a clone or an executable graph', async () => {
  const { object, ends } = watched()
  const graph = Graph.create(device)
  graph.add(emptyNode())
  expect(object.retainBy(graph)).toBe(object)
  const clone = graph.clone()
  const exec = graph.instantiate()
  using stream = Stream.create(device)
  object.dispose()
  object.dispose()
  graph.dispose()
  clone.dispose()
  exec.launch(stream)
  await stream.synchronize()
  await after(20)
  expect(ends).toEqual([])
  exec.dispose()
  await untilTold(ends)
  await after(5)
  expect(ends).toEqual([0])
})

test('a graph releases its UserObjects on disposal', async () => {
  const { object, ends } = watched()
  using graph = Graph.create(device)
  object.retainBy(graph, 2).releaseBy(graph)
  object.dispose()
  await after(20)
  expect(ends).toEqual([])
  graph.dispose()
  await untilTold(ends)
})

test('a UserObject without a graph ends at once', async () => {
  const { object, ends } = watched()
  object.dispose()
  await untilTold(ends)
})

test('UserObject refuses other values, disposed graphs, and references the graph does not hold', () => {
  expect(() => UserObject.create(5 as never)).toThrow(/^UserObject.create: fn must be a function, not 5/)
  const { object } = watched()
  using graph = Graph.create(device)
  expect(() => object.retainBy(5 as never)).toThrow(/^UserObject.retainBy: graph must be a Graph, not 5/)
  expect(() => object.releaseBy({} as never)).toThrow(/^UserObject.releaseBy: graph must be a Graph/)
  for (const count of [0, -1, 1.5, Number.NaN, '1', 2 ** 31]) {
    expect(() => object.retainBy(graph, count as never)).toThrow(
      /^UserObject.retainBy: count must be an integer from 1 /,
    )
    expect(() => object.releaseBy(graph, count as never)).toThrow(/^UserObject.releaseBy: count must be /)
  }
  expect(() => object.releaseBy(graph)).toThrow(StatusError)
  const gone = Graph.create(device)
  gone.dispose()
  expect(() => object.retainBy(gone)).toThrow(DisposedError)
  object.dispose()
  expect(() => object.retainBy(graph)).toThrow(DisposedError)
  expect(() => object.handle).toThrow(DisposedError)
})
