// At each launch of a graph, the objects of its captured operations exist, or the launch throws.
import {
  Communicator,
  group,
  groupOffThread,
  NcclMemory,
  type PreMulSum,
  prepareGroup,
  type Registration,
  type Window,
} from '@shoal/nccl'
import { BusyError, DisposedError } from '@shoal/types'
import { afterEach, describe, expect, test } from 'vitest'
import { startSoftwareDevice } from './fixtures/device.js'

startSoftwareDevice()
const { Device, DeviceBuffer, driverLibrary, Stream } = await import('@shoal/driver/shared')
const { Graph } = await import('@shoal/driver/graph')
type Stream = import('@shoal/driver/shared').Stream
type Buffer = import('@shoal/driver/shared').DeviceBuffer<'f32'>
type Graph = import('@shoal/driver/graph').Graph

const device = Reflect.construct(Device, [0, 0, driverLibrary])
const length = 1024

/** Objects of operations. Each ends in a different way. */
interface World {
  readonly communicator: Communicator
  readonly stream: Stream
  readonly send: Buffer
  readonly recv: Buffer
  readonly scalar: Buffer
  readonly op: PreMulSum
  readonly memory: NcclMemory
  readonly window: Window
  readonly registration: Registration
}

const left: (() => unknown)[] = []
afterEach(async () => {
  for (const end of left.splice(0).reverse()) await end()
})

async function world(): Promise<World> {
  const [communicator] = (await Communicator.initAll([0])) as [Communicator]
  const stream = Stream.create(device, { nonBlocking: true })
  const [send, recv, scalar] = [
    DeviceBuffer.zeros(device, 'f32', length),
    DeviceBuffer.zeros(device, 'f32', length),
    DeviceBuffer.zeros(device, 'f32', 1),
  ]
  const memory = await NcclMemory.allocate(0, { dtype: 'f32', length })
  const window = await communicator.registerWindow(memory)
  left.push(() => communicator.abort())
  const made = { communicator, stream, send, recv, scalar, memory, window }
  return { ...made, op: communicator.createPreMulSum(scalar), registration: communicator.register(send) }
}

const all = ['send', 'recv'] as const
type Used = 'send' | 'recv' | 'scalar' | 'window' | 'registration'
const operations: {
  readonly [name: string]: { readonly uses: readonly Used[]; readonly call: (world: World) => void }
} = {
  allReduce: {
    uses: [...all, 'registration'],
    call: ({ communicator, send, recv, stream }) => communicator.allReduce(send, recv, { stream }),
  },
  'allReduce with a scalar': {
    uses: ['scalar'],
    call: ({ communicator, send, recv, stream, op }) => communicator.allReduce(send, recv, { stream, op }),
  },
  'allReduce in a window': {
    uses: ['window'],
    call: ({ communicator, memory, stream }) => communicator.allReduce(memory, memory, { stream }),
  },
  allGather: {
    uses: all,
    call: ({ communicator, send, recv, stream }) => communicator.allGather(send, recv, { stream }),
  },
  reduceScatter: {
    uses: all,
    call: ({ communicator, send, recv, stream }) => communicator.reduceScatter(send, recv, { stream }),
  },
  allToAll: {
    uses: all,
    call: ({ communicator, send, recv, stream }) => communicator.allToAll(send, recv, { stream }),
  },
  broadcast: {
    uses: all,
    call: ({ communicator, send, recv, stream }) => communicator.broadcast(send, recv, { stream, root: 0 }),
  },
  reduce: {
    uses: [...all, 'scalar'],
    call: ({ communicator, send, recv, stream, op }) => communicator.reduce(send, recv, { stream, root: 0, op }),
  },
  gather: {
    uses: all,
    call: ({ communicator, send, recv, stream }) => communicator.gather(send, recv, { stream, root: 0 }),
  },
  scatter: {
    uses: all,
    call: ({ communicator, send, recv, stream }) => communicator.scatter(send, recv, { stream, root: 0 }),
  },
  'send and recv': {
    uses: all,
    call: ({ communicator, send, recv, stream }) =>
      group(() => {
        communicator.send(send, { peer: 0, stream })
        communicator.recv(recv, { peer: 0, stream })
      }),
  },
  'PreparedCollective.launch': {
    uses: all,
    call: ({ communicator, send, recv, stream }) => communicator.prepareAllReduce(send, recv, { stream }).launch(),
  },
  'PreparedGroup.launch': {
    uses: all,
    call: ({ communicator, send, recv, stream }) =>
      prepareGroup([communicator.prepareAllReduce(send, recv, { stream })]).launch(),
  },
  putSignal: {
    uses: ['window'],
    call: ({ communicator, memory, window, stream }) => communicator.putSignal(memory, { window, peer: 0, stream }),
  },
  signal: { uses: [], call: ({ communicator, stream }) => communicator.signal({ peer: 0, stream }) },
  'signal and waitSignal': {
    uses: [],
    call: ({ communicator, stream }) => {
      communicator.signal({ peer: 0, stream })
      communicator.waitSignal({ peer: 0 }, { stream })
    },
  },
}

async function captured(name: string): Promise<World & { readonly graph: Graph }> {
  const made = await world()
  // Operations that connect ranks cannot be captured.
  const { call } = operations[name] as (typeof operations)[string]
  call(made)
  made.stream.synchronizeSync()
  const graph = Graph.capture(made.stream, () => call(made))
  left.push(() => graph.dispose())
  return { ...made, graph }
}

function launch(step: { launch(stream: Stream): void }, stream: Stream): unknown {
  try {
    step.launch(stream)
    stream.synchronizeSync()
    return undefined
  } catch (error) {
    return error
  }
}

const names = Object.keys(operations)
const uses = names.flatMap((name) => (operations[name]?.uses ?? []).map((used) => [name, used] as const))

describe('a captured operation', () => {
  test.each(uses)('%s throws at a launch after its %s was disposed', async (name, used) => {
    const { graph, stream, [used]: object } = await captured(name)
    using step = graph.instantiate()
    expect(launch(step, stream)).toBeUndefined()
    await object.dispose()
    expect(launch(step, stream)).toBeInstanceOf(DisposedError)
  })

  test.each(names)('%s keeps its communicator alive', async (name) => {
    const { graph, stream, communicator } = await captured(name)
    const step = graph.instantiate()
    graph.dispose()
    for (const attempt of [() => communicator.destroy(), () => communicator.finalize()]) {
      await expect(attempt()).rejects.toThrow(BusyError)
    }
    await expect(communicator.destroy()).rejects.toThrow(
      'Communicator.destroy: the Communicator is busy with captured graphs; dispose of the graphs that captured its operations',
    )
    expect(launch(step, stream)).toBeUndefined()
    step.dispose()
    await communicator.destroy()
  })

  test.each(names)('%s throws at a launch after its communicator was aborted', async (name) => {
    const { graph, stream, communicator } = await captured(name)
    using step = graph.instantiate()
    // This settles while NCCL still waits for the graph.
    await communicator.abort()
    expect(launch(step, stream)).toMatchObject({ name: 'DisposedError', operation: 'GraphExec.launch' })
  })
})

test('groupOffThread refuses a captured stream, because its calls run after the capture', async () => {
  const { communicator, send, recv, stream } = await world()
  communicator.allReduce(send, recv, { stream })
  let made: Promise<void> | undefined
  using graph = Graph.capture(stream, () => {
    made = groupOffThread(() => communicator.allReduce(send, recv, { stream }))
    made.catch(() => undefined)
  })
  await expect(made).rejects.toThrow('groupOffThread: stream must be one that is not captured (group takes those)')
  expect(graph.nodes).toEqual([])
})

test('a communicator can be destroyed after a failed capture', async () => {
  const { communicator, send, recv, stream } = await world()
  communicator.allReduce(send, recv, { stream })
  const fail = (): void => {
    communicator.allReduce(send, recv, { stream })
    throw new Error('thrown by the program')
  }
  expect(() => Graph.capture(stream, fail)).toThrow('thrown by the program')
  await communicator.destroy()
})

test('the table has every operation of a communicator', () => {
  const withoutNeeds = new Set([
    'allocate',
    'createDeviceCommunicator',
    'createPreMulSum',
    'register',
    'registerWindow',
    'team',
  ])
  const prepared = /^prepare(\w)(\w*)$/
  const operationsOf = Object.getOwnPropertyNames(Object.getPrototypeOf(Communicator.prototype))
  const known = names.flatMap((name) => name.split(/ and | /))
  const missing = operationsOf.filter(
    (name) => name !== 'constructor' && !known.includes(name) && !withoutNeeds.has(name) && !prepared.test(name),
  )
  expect(missing).toEqual([])
})
