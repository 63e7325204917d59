import { Worker } from 'node:worker_threads'
import { Communicator, type CommunicatorConfig, group, groupOffThread, simulateGroup, UniqueId } from '@shoal/nccl'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { connected } from './fixtures/connected.js'
import { deviceCount, errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

// Tests operations that connect ranks of one thread: in the call of the first rank, NCCL would wait for the second
// one's.

const open: Communicator[] = []
let memory: TestMemory[]
let streams: TestStream[]

beforeAll(() => {
  startSoftwareDevice()
  const devices = Array.from({ length: deviceCount }, (_, device) => device)
  memory = devices.map((device) => TestMemory.from(device, new Float32Array([1])))
  streams = devices.map((device) => new TestStream(device))
})

afterEach(async () => {
  vi.unstubAllEnvs()
  await Promise.all(open.splice(0).map((one) => one.abort()))
})

function kept<C extends readonly (Communicator | undefined)[]>(communicators: C): C {
  for (const one of communicators) if (one !== undefined) open.push(one)
  return communicators
}

async function pair(config?: CommunicatorConfig): Promise<[Communicator, Communicator]> {
  return kept(
    (await Communicator.initAll([0, 1], config === undefined ? {} : { config })) as [Communicator, Communicator],
  )
}

const at = (one: Communicator) => ({
  buffer: memory[one.deviceOrdinal] as TestMemory,
  stream: streams[one.deviceOrdinal] as TestStream,
})
function reduce(one: Communicator): void {
  const { buffer, stream } = at(one)
  one.allReduce(buffer, buffer, { stream })
}
const send = (one: Communicator, peer: number) => one.send(at(one).buffer, { peer, stream: at(one).stream })
const recv = (one: Communicator, peer: number) => one.recv(at(one).buffer, { peer, stream: at(one).stream })
const finished = (...all: Communicator[]) =>
  Promise.all(all.map((one) => one.synchronize(at(one).stream, { timeout: 10_000 })))
const unconnected = { code: 'SHOAL_COMMUNICATOR_STATE', state: 'unconnected' }

test('a dropped or simulated group connects no ranks', async () => {
  const [first, second] = await pair()
  const both = (): void => {
    reduce(first)
    reduce(second)
  }
  const thrown = new Error('mine')
  const failing = (): never => {
    both()
    throw thrown
  }
  expect(errorOf(() => group(failing))).toBe(thrown)
  expect(errorOf(() => reduce(first))).toMatchObject(unconnected)
  await expect(groupOffThread(failing)).rejects.toBe(thrown)
  expect(errorOf(() => reduce(first))).toMatchObject(unconnected)
  simulateGroup(both)
  expect(errorOf(() => reduce(second))).toMatchObject(unconnected)
  group(both)
  reduce(second)
  reduce(first)
  await finished(first, second)
})

test('a group that lacks a rank of this thread is refused, unless that rank waits on another thread', async () => {
  const [first, second] = await pair()
  expect(errorOf(() => group(() => reduce(second)))).toMatchObject({
    ...unconnected,
    operation: 'group',
    rank: 1,
    message: expect.stringMatching(/^group: rank 1 of 2 \(device 1\) is unconnected\. .*put the calls of all ranks/),
  })
  const elsewhere = groupOffThread(() => reduce(first))
  group(() => reduce(second))
  await elsewhere
  await finished(first, second)
  reduce(first)
  reduce(second)
  await finished(first, second)
})

test('collectives do not connect sends, which connect per pair and direction', async () => {
  const [first, second] = await connected(await pair())
  expect(errorOf(() => send(first, 1))).toMatchObject({ ...unconnected, operation: 'ncclSend', rank: 0 })
  expect(errorOf(() => group(() => send(first, 1)))).toMatchObject({ ...unconnected, operation: 'group' })
  group(() => {
    send(first, 1)
    recv(second, 0)
  })
  send(first, 1)
  recv(second, 0)
  await finished(first, second)
  expect(errorOf(() => send(second, 0))).toMatchObject({ ...unconnected, rank: 1 })
  await groupOffThread(() => {
    send(second, 0)
    recv(first, 1)
  })
  recv(first, 1)
  send(second, 0)
  await finished(first, second)
})

test('sends do not connect collectives', async () => {
  const [first, second] = await pair()
  group(() => {
    send(first, 1)
    recv(second, 0)
  })
  expect(errorOf(() => reduce(first))).toMatchObject({ ...unconnected, operation: 'ncclAllReduce' })
  await finished(first, second)
})

test.for(['first', 'last'])(
  'ranks that join a growing communicator count as ranks of this thread, also if they join %s',
  async (when) => {
    const [first, second] = await connected(await pair())
    const id = first.createUniqueId()
    const join = () => Communicator.joinGrown({ device: 2, rank: 2, worldSize: 3, id })
    const grow = () => [second.grow({ worldSize: 3 }), first.grow({ worldSize: 3, id })]
    const coming = when === 'first' ? [join(), ...grow()] : [...grow(), join()]
    const grown = kept(await Promise.all(coming))
    for (const one of grown) expect(errorOf(() => reduce(one))).toMatchObject({ ...unconnected, worldSize: 3 })
    expect(errorOf(() => group(() => grown.slice(1).forEach(reduce)))).toMatchObject(unconnected)
    await connected(grown)
    for (const one of grown) reduce(one)
    await finished(...grown)
  },
)

test('children of split and shrink count as ranks of one thread, and are compared', async () => {
  const three = kept(await Communicator.initAll([0, 1, 2])) as [Communicator, Communicator, Communicator]
  const split = () => Promise.all(three.map((one, rank) => one.split({ color: Math.min(rank, 1) })))
  const [alone, ...two] = kept((await split()) as [Communicator, Communicator, Communicator])
  expect([alone.worldSize, ...two.map(({ worldSize }) => worldSize)]).toEqual([1, 2, 2])
  reduce(alone)
  for (const child of two) expect(errorOf(() => reduce(child))).toMatchObject({ ...unconnected, worldSize: 2 })
  const differing = errorOf(() =>
    group(() => {
      reduce(two[0] as Communicator)
      const { buffer, stream } = at(two[1] as Communicator)
      two[1]?.broadcast(buffer, buffer, { root: 0, stream })
    }),
  )
  expect(differing).toMatchObject({ name: 'TypeError', message: expect.stringContaining('ncclBroadcast') })
  await connected(two)
  reduce(two[1] as Communicator)
  reduce(two[0] as Communicator)
  // A second split with the same colors creates separate communicators.
  const [, ...further] = kept((await split()) as [Communicator, Communicator, Communicator])
  expect(errorOf(() => reduce(further[0] as Communicator))).toMatchObject(unconnected)
  await connected(further)
  // Excluded ranks do not count: a shrink to two ranks differs from one of all ranks.
  const rest = kept(await Promise.all(three.slice(0, 2).map((one) => one.shrink({ exclude: [2] }))))
  expect(errorOf(() => reduce(rest[0] as Communicator))).toMatchObject(unconnected)
  await connected(rest)
  await finished(alone, ...two)
})

test('a child with a separate config is blocking by default', async () => {
  const both = await pair({ blocking: false })
  const split = (config?: CommunicatorConfig) =>
    Promise.all(both.map((one) => one.split({ color: 0, ...(config === undefined ? {} : { config }) })))
  const inherited = kept((await split()) as [Communicator, Communicator])
  const named = kept((await split({ commName: 'child' })) as [Communicator, Communicator])
  const not = kept((await split({ blocking: false })) as [Communicator, Communicator])
  expect([inherited, named, not].map(([one]) => one.isBlocking)).toEqual([false, true, false])
  expect(errorOf(() => reduce(named[0]))).toMatchObject(unconnected)
  reduce(not[0])
  reduce(not[1])
  await finished(...not)
})

test('ranks count as local from the call that makes them, until that call fails', async () => {
  const id = UniqueId.create()
  // The other ranks never join.
  const given = [0, 1].map((rank) => Communicator.initRank({ device: rank, rank, worldSize: 3, id, timeout: 50 }))
  for (const one of await Promise.allSettled(given)) expect(one.status).toBe('rejected')
  const next = UniqueId.create()
  const refusals: unknown[] = []
  const join = (rank: number) => Communicator.initRank({ device: rank, rank, worldSize: 2, id: next })
  // The first rank is usable before the other rank's promise has settled.
  const first = join(0).then((one) => {
    refusals.push(errorOf(() => reduce(one)))
    return one
  })
  const second = join(1).then((one) => {
    refusals.push(errorOf(() => reduce(one)))
    return one
  })
  await connected(kept(await Promise.all([first, second])))
  expect(refusals).toMatchObject([unconnected, unconnected])
})

test('NCCL_RUNTIME_CONNECT=0 makes the init connect collectives', async () => {
  vi.stubEnv('NCCL_RUNTIME_CONNECT', '0')
  const [first, second] = await pair()
  reduce(first)
  reduce(second)
  await finished(first, second)
  expect(errorOf(() => send(first, 1))).toMatchObject(unconnected)
})

test('a group may wait for a peer in another thread', async () => {
  const id = UniqueId.create()
  const script = `
    const { workerData } = require('node:worker_threads')
    import(workerData.nccl).then(async ({ Communicator, UniqueId }) => {
      const id = UniqueId.fromBase64(workerData.id)
      const communicator = await Communicator.initRank({ device: 2, rank: 2, worldSize: 3, id })
      const memory = { [Symbol.for('cuda.memory')]: workerData.memory }
      communicator.recv(memory, { peer: 0, stream: workerData.stream })
      await communicator.synchronize(workerData.stream)
      await communicator.abort()
    })
  `
  const far = memory[2] as TestMemory
  const range = { ...(far[Symbol.for('cuda.memory') as never] as object) }
  far.write(new Float32Array([0]))
  const workerData = {
    nccl: import.meta.resolve('@shoal/nccl'),
    id: String(id),
    memory: range,
    stream: streams[2]?.handle,
  }
  const worker = new Worker(script, { eval: true, workerData })
  const ended = new Promise<number>((resolve, reject) => worker.once('exit', resolve).once('error', reject))
  const two = await Promise.all([0, 1].map((rank) => Communicator.initRank({ device: rank, rank, worldSize: 3, id })))
  const [first] = kept(two) as [Communicator, Communicator]
  memory[0]?.write(new Float32Array([7]))
  expect(errorOf(() => send(first, 1))).toMatchObject(unconnected)
  expect(errorOf(() => reduce(first))).toMatchObject(unconnected)
  send(first, 2)
  await finished(first)
  expect(await ended).toBe(0)
  expect(far.floats()).toEqual([7])
})
