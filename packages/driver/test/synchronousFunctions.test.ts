import { AsyncLocalStorage } from 'node:async_hooks'
import { Device, type Stream } from '@shoal/driver'
import { Graph, hostNode, UserObject } from '@shoal/driver/graph'
import { expect, test } from 'vitest'
import { moduleRunner } from '../../ffi/test/support/stub.js'

const runModule = moduleRunner(new URL('../', import.meta.url))
process.env['SHOAL_DEVICE'] = 'sim'
const device = Device.get(0)

const unfinished: { readonly [kind: string]: () => void } = {
  'an async function': async () => undefined,
  'a generator function': function* () {
    yield 1
  },
  'an async generator function': async function* () {
    yield 1
  },
}

test.each(Object.entries(unfinished))('hostFunction and hostNode refuse %s', async (kind, fn) => {
  using stream = device.createStream()
  const wrong = (api: string) => new TypeError(`${api}: fn must be a synchronous function, not ${kind}`)
  await expect(stream.hostFunction(fn)).rejects.toEqual(wrong('Stream.hostFunction'))
  expect(() => hostNode(fn)).toThrow(wrong('hostNode'))
  let captured: Promise<void> | undefined
  Graph.capture(stream, () => {
    captured = stream.hostFunction(fn)
    captured.catch(() => undefined)
  }).dispose()
  await expect(captured).rejects.toEqual(wrong('Stream.hostFunction'))
})

test('hostFunction rejects when the function returns a promise, however that promise settles', async () => {
  using stream = device.createStream()
  for (const fn of [() => Promise.resolve(), () => Promise.reject(new Error('lost'))]) {
    await expect(stream.hostFunction(fn)).rejects.toEqual(
      new TypeError('Stream.hostFunction: fn must be a synchronous function, not one that returns a promise'),
    )
  }
})

test('a graph function that returns a promise raises an uncaught TypeError at each launch', () => {
  const lines = runModule(
    `import { Device } from '@shoal/driver'
     import { Graph, hostNode } from '@shoal/driver/graph'
     const errors = []
     const rest = new Promise((resolve) => {
       process.on('uncaughtException', (error) => errors.push(error.message) === 2 && resolve())
     })
     const stream = Device.get(0).createStream()
     const lost = () => Promise.reject(new Error('lost'))
     const captured = Graph.capture(stream, () => void stream.hostFunction(lost))
     const byHand = Graph.create(Device.get(0))
     byHand.add(hostNode(lost))
     const alive = setInterval(() => undefined, 1000)
     for (const graph of [captured, byHand]) graph.instantiate().launch(stream)
     await rest
     clearInterval(alive)
     for (const error of errors) console.log(error)`,
    { SHOAL_DEVICE: 'sim' },
  )
  const message = 'fn must be a synchronous function, not one that returns a promise'
  expect(lines).toEqual([`Stream.hostFunction: ${message}`, `hostNode: ${message}`])
})

const storage = new AsyncLocalStorage<string>()

/** Returns the store that a function sees if it was passed within `request`. */
async function storeIn(pass: (fn: () => void, stream: Stream) => Disposable | undefined): Promise<string | undefined> {
  using stream = device.createStream()
  return await new Promise((resolve) => {
    const passed = storage.run('request', () => pass(() => resolve(storage.getStore()), stream))
    passed?.[Symbol.dispose]()
  })
}

function launched(graph: Graph, stream: Stream): Disposable {
  const executable = graph.instantiate()
  executable.launch(stream)
  return executable
}

test.each<[string, Parameters<typeof storeIn>[0]]>([
  [
    'Stream.hostFunction',
    (fn, stream) => {
      void stream.hostFunction(fn)
      return undefined
    },
  ],
  [
    'a captured Stream.hostFunction',
    (fn, stream) =>
      launched(
        Graph.capture(stream, () => void stream.hostFunction(fn)),
        stream,
      ),
  ],
  [
    'hostNode',
    (fn, stream) => {
      const graph = Graph.create(device)
      graph.add(hostNode(fn))
      return launched(graph, stream)
    },
  ],
  ['UserObject.create', (fn) => UserObject.create(fn)],
])('the function of %s runs in the AsyncLocalStorage context of its caller', async (_, pass) => {
  const alive = setInterval(() => undefined, 1000)
  expect(await storeIn(pass)).toBe('request')
  clearInterval(alive)
})
