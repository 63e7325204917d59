import { NativeMemory } from '@shoal/ffi'
import {
  Communicator,
  CommunicatorAbortedError,
  type CommunicatorConfig,
  CommunicatorStateError,
  group,
  UniqueId,
} from '@shoal/nccl'
import { AbortedError, DisposedError, TimeoutError } from '@shoal/types'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { connected } from './fixtures/connected.js'
import { deviceCount, errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

beforeAll(startSoftwareDevice)

const devices = Array.from({ length: deviceCount }, (_, device) => device)
const open = new Set<Communicator>()

afterEach(async () => {
  const left = [...open]
  open.clear()
  await Promise.all(left.map((one) => one.abort()))
})

function watched<T extends Communicator | undefined>(communicators: T[]): T[] {
  for (const one of communicators) if (one !== undefined) open.add(one)
  return communicators
}

async function world(config?: CommunicatorConfig): Promise<[Communicator, Communicator, Communicator]> {
  return watched(await Communicator.initAll(devices, config === undefined ? {} : { config })) as never
}

/** Returns the sum of the ranks' numbers over all ranks of a communicator. */
async function sum(communicators: readonly Communicator[], numbers: readonly number[]): Promise<number[]> {
  const memory = communicators.map(({ deviceOrdinal }, index) =>
    TestMemory.from(deviceOrdinal, new Float32Array([numbers[index] ?? 0])),
  )
  const streams = communicators.map(({ deviceOrdinal }) => new TestStream(deviceOrdinal))
  group(() => {
    for (const [index, communicator] of communicators.entries()) {
      const buffer = memory[index] as TestMemory
      communicator.allReduce(buffer, buffer, { stream: streams[index] as TestStream })
    }
  })
  await Promise.all(
    communicators.map((one, index) => one.synchronize(streams[index] as TestStream, { timeout: 10_000 })),
  )
  const results = memory.map((one) => one.floats()[0] as number)
  for (const one of [...memory, ...streams]) one.dispose()
  return results
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it resolved')
    },
    (error: unknown) => error,
  )
}

const place = ({ rank, worldSize, deviceOrdinal }: Communicator): number[] => [rank, worldSize, deviceOrdinal]
const isCommunicator = (one: Communicator | undefined): one is Communicator => one !== undefined

describe.each([
  ['blocking', undefined],
  ['not blocking', { blocking: false }],
])('%s', (_, config) => {
  test('splits by color and key; a rank without color gets none', async () => {
    const all = await world(config)
    const colors = [0, null, 0]
    const parts = watched(
      await Promise.all(all.map((one, rank) => one.split({ color: colors[rank] ?? null, key: -rank }))),
    )
    expect(parts[1]).toBeUndefined()
    const pair = parts.filter(isCommunicator)
    // The key reverses the order.
    expect(pair.map(place)).toEqual([
      [1, 2, 0],
      [0, 2, 2],
    ])
    expect(pair.every(({ isBlocking }) => isBlocking === (config === undefined))).toBe(true)
    expect(await sum(pair, [1, 2])).toEqual([3, 3])
    expect(await sum(all, [1, 2, 3])).toEqual([6, 6, 6])
    await Promise.all(pair.map((one) => one.destroy()))
    await Promise.all(all.map((one) => one.destroy()))
  })

  test('a child outlives its parent, unless they share resources', async () => {
    const all = await world(config)
    const parts = watched(await Promise.all(all.map((one) => one.split({ color: 1 })))).filter(isCommunicator)
    await Promise.all(all.map((one) => one.destroy()))
    expect(await sum(parts, [1, 2, 3])).toEqual([6, 6, 6])
    await Promise.all(parts.map((one) => one.destroy()))

    const sharing = await world({ ...config, splitShare: true })
    const children = watched(await Promise.all(sharing.map((one) => one.split({ color: 1 })))).filter(isCommunicator)
    const grandchildren = watched(await Promise.all(children.map((one) => one.split({ color: 1 })))).filter(
      isCommunicator,
    )
    await Promise.all(sharing.map((one) => one.destroy()))
    expect([...children, ...grandchildren].every(({ disposed }) => disposed)).toBe(true)
    expect(errorOf(() => children[0]?.handle)).toBeInstanceOf(DisposedError)
  })

  test('an abort reaches only communicators that share resources', async () => {
    const sharing = await world({ ...config, splitShare: true })
    const children = watched(await Promise.all(sharing.map((one) => one.split({ color: 1 })))).filter(isCommunicator)
    await Promise.all(sharing.map((one) => one.abort()))
    expect(errorOf(() => children[0]?.asyncError())).toMatchObject({ reason: 'parent' })
    const all = await world(config)
    const parts = watched(await Promise.all(all.map((one) => one.split({ color: 1 })))).filter(isCommunicator)
    await Promise.all(all.map((one) => one.abort()))
    expect(await sum(parts, [1, 2, 3])).toEqual([6, 6, 6])
  })

  test('shrinks to the remaining ranks', async () => {
    const all = await world(config)
    const left = watched(await Promise.all([0, 2].map((rank) => (all[rank] as Communicator).shrink({ exclude: [1] }))))
    expect(left.map(place)).toEqual([
      [0, 2, 0],
      [1, 2, 2],
    ])
    expect(await sum(left, [1, 2])).toEqual([3, 3])
    await Promise.all(all.map((one) => one.destroy()))
    expect(await sum(left, [4, 5])).toEqual([9, 9])
    await Promise.all(left.map((one) => one.destroy()))
  })

  test('shrinking with abort rejects waits for a missing rank', async () => {
    const all = await connected(await world(config))
    const memory = [0, 2].map((device) => TestMemory.from(device, new Float32Array([1])))
    const streams = [0, 2].map((device) => new TestStream(device))
    const waits = await Promise.all(
      [0, 2].map(async (rank, index) => {
        const [buffer, stream] = [memory[index] as TestMemory, streams[index] as TestStream]
        const communicator = all[rank] as Communicator
        communicator.allReduce(buffer, buffer, { stream })
        await communicator.ready()
        return { ended: rejection(communicator.synchronize(stream)) }
      }),
    )
    const left = watched(
      await Promise.all([0, 2].map((rank) => (all[rank] as Communicator).shrink({ exclude: [1], abort: true }))),
    )
    for (const { ended } of waits) {
      const error = await ended
      expect(error).toBeInstanceOf(CommunicatorAbortedError)
      expect(error).toMatchObject({ operation: 'synchronize', reason: 'revoke', lastOperation: 'ncclAllReduce' })
    }
    expect(await sum(left, [1, 2])).toEqual([3, 3])
    const late = errorOf(() => all[0].allReduce(memory[0] as TestMemory, memory[0] as TestMemory, { stream: null }))
    expect(late).toBeInstanceOf(CommunicatorStateError)
    expect(late).toMatchObject({ code: 'SHOAL_COMMUNICATOR_STATE', state: 'revoked', operation: 'allReduce', rank: 0 })
    for (const one of [...memory, ...streams]) one.dispose()
  })

  test('grows by joining ranks', async () => {
    const pair = watched(await Communicator.initAll([0, 1], config === undefined ? {} : { config })) as [
      Communicator,
      Communicator,
    ]
    const id = pair[0].createUniqueId()
    const grown = watched(
      await Promise.all([
        pair[0].grow({ worldSize: 3, id }),
        pair[1].grow({ worldSize: 3 }),
        Communicator.joinGrown({ device: 2, rank: 2, worldSize: 3, id, ...(config === undefined ? {} : { config }) }),
      ]),
    )
    expect(grown.map(place)).toEqual([
      [0, 3, 0],
      [1, 3, 1],
      [2, 3, 2],
    ])
    expect(await sum(grown, [1, 2, 3])).toEqual([6, 6, 6])
    await Promise.all(pair.map((one) => one.destroy()))
    await Promise.all(grown.map((one) => one.destroy()))
  })

  test('revoke() rejects pending waits, and children can still be made', async () => {
    const all = await connected(await world(config))
    const memory = TestMemory.from(0, new Float32Array([1]))
    const stream = new TestStream(0)
    all[0].allReduce(memory, memory, { stream })
    await all[0].ready()
    const waiting = rejection(all[0].synchronize(stream))
    await Promise.all(all.map((one) => one.revoke()))
    expect(await waiting).toMatchObject({ operation: 'synchronize', reason: 'revoke' })
    expect(errorOf(() => all[1].createUniqueId())).toBeInstanceOf(CommunicatorStateError)
    await expect(all[0].grow({ worldSize: 4 })).rejects.toBeInstanceOf(CommunicatorStateError)
    await expect(all[0].suspend()).rejects.toBeInstanceOf(CommunicatorStateError)
    await expect(all[0].synchronize(stream)).rejects.toBeInstanceOf(CommunicatorStateError)
    const parts = watched(await Promise.all(all.map((one) => one.split({ color: 0 })))).filter(isCommunicator)
    expect(await sum(parts, [1, 2, 3])).toEqual([6, 6, 6])
    await Promise.all(all.map((one) => one.destroy()))
    for (const one of [memory, stream]) one.dispose()
  })

  test('suspends and resumes', async () => {
    const all = await world(config)
    expect(await sum(all, [1, 2, 3])).toEqual([6, 6, 6])
    await Promise.all(all.map((one) => one.suspend()))
    expect(all[0].memoryStatistics().isSuspended).toBe(true)
    const memory = TestMemory.from(0, new Float32Array([1]))
    const refused = errorOf(() => all[0].allReduce(memory, memory, { stream: null }))
    expect(refused).toMatchObject({ code: 'SHOAL_COMMUNICATOR_STATE', state: 'suspended' })
    expect((refused as Error).message).toContain('resume() it first')
    await expect(all[0].split({ color: 0 })).rejects.toBeInstanceOf(CommunicatorStateError)
    memory.dispose()
    await Promise.all(all.map((one) => one.resume()))
    expect(all[0].memoryStatistics().isSuspended).toBe(false)
    expect(await sum(all, [1, 2, 3])).toEqual([6, 6, 6])
    await Promise.all(all.map((one) => one.suspend()))
    await Promise.all(all.map((one) => one.destroy()))
  })

  test('returns its properties and its memory statistics', async () => {
    const all = await world(config)
    const dispose = vi.spyOn(NativeMemory.prototype, 'dispose')
    expect(all[1].properties()).toMatchObject({ rank: 1, worldSize: 3, deviceOrdinal: 1 })
    // The memory is freed explicitly, because the collector does not know the size of native memory.
    expect(dispose).toHaveBeenCalledTimes(1)
    dispose.mockRestore()
    const { suspendable, persistent, total, isSuspended } = all[1].memoryStatistics()
    expect(isSuspended).toBe(false)
    expect(suspendable + persistent).toBeLessThanOrEqual(total)
    await Promise.all(all.map((one) => one.destroy()))
    expect(errorOf(() => all[1].properties())).toBeInstanceOf(DisposedError)
    expect(errorOf(() => all[1].memoryStatistics())).toBeInstanceOf(DisposedError)
  })

  test('a split without the other ranks times out', async () => {
    const all = await world(config)
    const start = performance.now()
    const error = await rejection(all[0].split({ color: 0, timeout: 150 }))
    expect(performance.now() - start).toBeLessThan(30_000)
    expect(error).toMatchObject({ operation: 'split', reason: 'timeout', rank: 0 })
    expect(all[0].disposed).toBe(true)
    // Late ranks do not wait longer either.
    const late = await rejection(all[1].split({ color: 0, timeout: 300 }))
    expect(late).toBeInstanceOf(Error)
  })

  test('a join without the other ranks times out', async () => {
    const pair = watched(await Communicator.initAll([0, 1], config === undefined ? {} : { config })) as [Communicator]
    const id = pair[0].createUniqueId()
    const joining = { device: 2, rank: 2, worldSize: 3, id, timeout: 150, ...(config === undefined ? {} : { config }) }
    await expect(Communicator.joinGrown(joining)).rejects.toBeInstanceOf(TimeoutError)
    await expect(Communicator.joinGrown({ ...joining, signal: AbortSignal.abort() })).rejects.toThrow(AbortedError)
  })
})

test('several unique ids let the ranks join as well', async () => {
  const ids = [UniqueId.create(), UniqueId.create()]
  const all = watched(
    await Promise.all(
      devices.map((device) => Communicator.initRank({ device, rank: device, worldSize: deviceCount, id: ids })),
    ),
  )
  expect(await sum(all, [1, 2, 3])).toEqual([6, 6, 6])
  await Promise.all(all.map((one) => one.destroy()))
})

test('calls of one communicator run one after the other, and operations wait for none of them', async () => {
  const all = await world()
  const both = Promise.all(all.flatMap((one) => [one.split({ color: 0 }), one.split({ color: 1 })]))
  const memory = TestMemory.from(0, new Float32Array([1]))
  expect(errorOf(() => all[0].allReduce(memory, memory, { stream: null }))).toMatchObject({
    code: 'SHOAL_BUSY',
    underWay: 'split',
  })
  expect(errorOf(() => all[0].properties())).toMatchObject({ message: expect.stringContaining('split') })
  const parts = watched(await both).filter(isCommunicator)
  expect(parts).toHaveLength(6)
  memory.dispose()
  await Promise.all(parts.map((one) => one.destroy()))
  await Promise.all(all.map((one) => one.destroy()))
})

test('a child may be blocking if its parent is not, and vice versa', async () => {
  const all = await world({ blocking: false })
  const parts = watched(
    await Promise.all(all.map((one) => one.split({ color: 0, config: { blocking: true } }))),
  ).filter(isCommunicator)
  expect(parts.map(({ isBlocking }) => isBlocking)).toEqual([true, true, true])
  const again = watched(
    await Promise.all(parts.map((one) => one.split({ color: 0, config: { blocking: false } }))),
  ).filter(isCommunicator)
  expect(again.map(({ isBlocking }) => isBlocking)).toEqual([false, false, false])
  expect(await sum(again, [1, 2, 3])).toEqual([6, 6, 6])
})

test('the signal of a parent also aborts its children', async () => {
  const abort = new AbortController()
  const all = watched(await Communicator.initAll(devices, { signal: abort.signal }))
  const parts = watched(await Promise.all(all.map((one) => one.split({ color: 0 })))).filter(isCommunicator)
  abort.abort('lost')
  expect(errorOf(() => parts[0]?.asyncError())).toMatchObject({ reason: 'signal', cause: 'lost' })
})

describe('derived communicators are refused before NCCL is called', () => {
  test.each([
    ['no options', 'split', undefined, TypeError],
    ['no color', 'split', {}, TypeError],
    ['a negative color', 'split', { color: -1 }, RangeError],
    ['a key that is no number', 'split', { color: 0, key: '1' }, TypeError],
    ['a key beyond an int', 'split', { color: 0, key: 2 ** 31 }, RangeError],
    ['an invalid config', 'split', { color: 0, config: 5 }, TypeError],
    ['an empty list to exclude', 'shrink', { exclude: [] }, RangeError],
    ['a rank that is not there', 'shrink', { exclude: [3] }, RangeError],
    ['itself', 'shrink', { exclude: [0, 1] }, RangeError],
    ['no list', 'shrink', { exclude: 1 }, TypeError],
    ['abort that is no boolean', 'shrink', { exclude: [1], abort: 1 }, TypeError],
    ['a config of no field', 'shrink', { exclude: [1], abort: true, config: { share: true } }, TypeError],
    ['growing to the same size', 'grow', { worldSize: 3 }, RangeError],
    ['an invalid id', 'grow', { worldSize: 4, id: new Uint8Array(128) }, TypeError],
  ])('%s', async (_, method, options, kind) => {
    const all = await world()
    const call = all[0][method as 'split'] as (options: unknown) => Promise<unknown>
    await expect(call.call(all[0], options)).rejects.toThrow(kind)
    // The communicator is unchanged.
    expect(await sum(all, [1, 2, 3])).toEqual([6, 6, 6])
    await Promise.all(all.map((one) => one.destroy()))
  })

  const id = UniqueId.fromBytes(new Uint8Array(128))
  test.each([
    ['no ids', { device: 0, rank: 0, worldSize: 2, id: [] }, RangeError],
    ['more ids than ranks', { device: 0, rank: 0, worldSize: 1, id: [id, id] }, RangeError],
    ['a list of something else', { device: 0, rank: 0, worldSize: 1, id: [1] }, TypeError],
    ['a negative time limit', { device: 0, rank: 0, worldSize: 1, id, timeout: -1 }, RangeError],
    ['a config of no field', { device: 0, rank: 0, worldSize: 1, id, config: { blockin: true } }, TypeError],
  ])('initRank: %s', async (_, options, kind) => {
    await expect(Communicator.initRank(options as never)).rejects.toThrow(kind)
  })
})
