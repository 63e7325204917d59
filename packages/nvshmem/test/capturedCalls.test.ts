// At each launch of a graph, the objects of its captured calls exist, or the launch throws.
import { Device, DeviceBuffer, Module } from '@shoal/driver'
import { Graph } from '@shoal/driver/graph'
import type { SymmetricBuffer, Team } from '@shoal/nvshmem'
import { BusyError, DisposedError } from '@shoal/types'
import { afterEach, describe, expect, test } from 'vitest'
import { onePe } from './fixtures/onePe.js'

const pe = onePe()
const device = Device.get(0)
const stream = device.createStream({ nonBlocking: true })
const length = 16

interface Objects {
  readonly target: SymmetricBuffer<'u64'>
  readonly source: SymmetricBuffer<'u64'>
  readonly signal: SymmetricBuffer<'u64'>
  readonly local: DeviceBuffer<'u64'>
  readonly ignore: DeviceBuffer<'i32'>
  readonly module: Module
  readonly team: Team
}

const code = `
.version 8.5
.target sm_90
.address_size 64
.visible .entry touch(.param .u64 at) { ret; }
`

const left: Objects[] = []
afterEach(async () => {
  for (const made of left.splice(0)) for (const object of Object.values(made)) await object.dispose()
})

async function objects(): Promise<Objects> {
  const { session } = pe
  const symmetric = (): Promise<SymmetricBuffer<'u64'>> => session.allocate('u64', length, { zeroed: true })
  const made: Objects = {
    target: await symmetric(),
    source: await symmetric(),
    signal: await symmetric(),
    local: DeviceBuffer.zeros(device, 'u64', length),
    ignore: DeviceBuffer.zeros(device, 'i32', length),
    module: await Module.load(device, code),
    team: (await session.world.splitStrided({ start: 0, size: 1 })) as Team,
  }
  left.push(made)
  return made
}

type Use = keyof Objects
const put: readonly Use[] = ['target', 'local']
const one = { pe: 0, stream }
const set = { ...one, value: 0 } as const
const wait = { comparison: '==', value: 0n, stream } as const

const calls: {
  readonly [name: string]: { readonly uses: readonly Use[]; readonly call: (given: Objects) => unknown }
} = {
  putOnStream: { uses: put, call: ({ target, local }) => pe.session.putOnStream(target, local, one) },
  putNonBlockingOnStream: {
    uses: put,
    call: ({ target, local }) => pe.session.putNonBlockingOnStream(target, local, one),
  },
  getOnStream: { uses: ['source', 'local'], call: ({ source, local }) => pe.session.getOnStream(local, source, one) },
  getNonBlockingOnStream: {
    uses: ['source', 'local'],
    call: ({ source, local }) => pe.session.getNonBlockingOnStream(local, source, one),
  },
  putElementOnStream: { uses: ['target'], call: ({ target }) => pe.session.putElementOnStream(target, 7n, one) },
  putStridedOnStream: {
    uses: put,
    call: ({ target, local }) => pe.session.putStridedOnStream(target, local, { ...one, count: 4, targetStride: 2 }),
  },
  getStridedOnStream: {
    uses: ['source', 'local'],
    call: ({ source, local }) => pe.session.getStridedOnStream(local, source, { ...one, count: 4 }),
  },
  putSignalOnStream: {
    uses: ['target', 'local', 'signal'],
    call: ({ target, local, signal }) => pe.session.putSignalOnStream(target, local, { ...set, signal }),
  },
  putSignalNonBlockingOnStream: {
    uses: ['target', 'local', 'signal'],
    call: ({ target, local, signal }) => pe.session.putSignalNonBlockingOnStream(target, local, { ...set, signal }),
  },
  barrierAllOnStream: { uses: [], call: () => pe.session.barrierAllOnStream({ stream }) },
  syncAllOnStream: { uses: [], call: () => pe.session.syncAllOnStream({ stream }) },
  quietOnStream: { uses: [], call: () => pe.session.quietOnStream({ stream }) },
  signalOnStream: { uses: ['signal'], call: ({ signal }) => pe.session.signals.signalOnStream(signal, set) },
  waitForSignalOnStream: {
    uses: ['signal'],
    call: ({ signal }) => pe.session.signals.waitForSignalOnStream(signal, wait),
  },
  waitUntilOnStream: { uses: ['signal'], call: ({ signal }) => pe.session.signals.waitUntilOnStream(signal, wait) },
  waitUntilAllOnStream: {
    uses: ['signal', 'ignore'],
    call: ({ signal, ignore }) => pe.session.signals.waitUntilAllOnStream(signal, { ...wait, ignore }),
  },
  waitUntilAllVectorOnStream: {
    uses: ['signal', 'ignore', 'local'],
    call: ({ signal, ignore, local }) =>
      pe.session.signals.waitUntilAllVectorOnStream(signal, { comparison: '==', values: local, ignore, stream }),
  },
  barrierOnStream: { uses: ['team'], call: ({ team }) => team.barrierOnStream({ stream }) },
  syncOnStream: { uses: ['team'], call: ({ team }) => team.syncOnStream({ stream }) },
  ...Object.fromEntries(
    (['fcollectOnStream', 'allToAllOnStream', 'reduceOnStream', 'reduceScatterOnStream'] as const).map((name) => [
      name,
      {
        uses: ['target', 'source', 'team'] as const,
        call: ({ target, source, team }: Objects) => team[name](target, source, { stream }),
      },
    ]),
  ),
  broadcastOnStream: {
    uses: ['target', 'source', 'team'],
    call: ({ target, source, team }) => team.broadcastOnStream(target, source, { root: 0, stream }),
  },
  launchCollectively: {
    uses: ['local', 'target', 'module'],
    call: ({ local, target, module }) => {
      const kernel = module.kernel('touch', ['ptr'])
      for (const memory of [local, target])
        pe.session.deviceCode.launchCollectively(kernel, { grid: 1, block: 1, stream }, memory)
    },
  },
}

function launch(step: { launch(on: typeof stream): void }): unknown {
  try {
    step.launch(stream)
    stream.synchronizeSync()
    return undefined
  } catch (error) {
    return error
  }
}

const names = Object.keys(calls)
const uses = names.flatMap((name) => (calls[name]?.uses ?? []).map((use) => [name, use] as const))

async function captured(name: string) {
  const made = await objects()
  const graph = Graph.capture(stream, () => void calls[name]?.call(made))
  return { ...made, graph }
}

describe('a captured call', () => {
  test.each(uses)('%s throws at a launch after its %s was disposed', async (name, use) => {
    const { graph, [use]: object } = await captured(name)
    using whole = graph
    using step = whole.instantiate()
    expect(launch(step)).toBeUndefined()
    await object.dispose()
    expect(launch(step)).toBeInstanceOf(DisposedError)
  })

  test('is refused if it would be queued until after the capture', async () => {
    const { target, local } = await objects()
    const underWay = pe.session.barrierAll()
    let made: Promise<void> | undefined
    using graph = Graph.capture(stream, () => {
      made = pe.session.putOnStream(target, local, one)
      made.catch(() => undefined)
    })
    await expect(made).rejects.toThrow(BusyError)
    await underWay
    expect(graph.nodes).toEqual([])
  })
})

test('the table of captured calls has every function that is called on a stream', () => {
  const parts: object[] = [pe.session, pe.session.signals, pe.session.world]
  const found = new Set<string>()
  for (let part of parts)
    for (; part !== Object.prototype; part = Object.getPrototypeOf(part))
      for (const name of Object.getOwnPropertyNames(part)) if (name.endsWith('OnStream')) found.add(name)
  expect([...found].filter((name) => !names.includes(name))).toEqual(['getElementOnStream'])
})

test('launching a graph throws after its session has ended', async () => {
  using graph = Graph.capture(stream, () => void pe.session.quietOnStream({ stream }))
  using step = graph.instantiate()
  expect(launch(step)).toBeUndefined()
  await pe.session.finalize()
  expect(launch(step)).toMatchObject({ name: 'DisposedError', operation: 'GraphExec.launch' })
})
