import { inspect } from 'node:util'
import { Communicator, type DeviceCommunicator, deviceResourceNeeds } from '@shoal/nccl'
import { nccl } from '@shoal/nccl-sys'
import { DisposedError } from '@shoal/types'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connected } from './fixtures/connected.js'
import { deviceCount, errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

let communicators: Communicator[]
const ranks = Array.from({ length: deviceCount }, (_, rank) => rank)

beforeAll(async () => {
  startSoftwareDevice()
  communicators = await Communicator.initAll(ranks)
})

afterAll(async () => {
  for (const communicator of communicators) await communicator.destroy()
})

function without(symbol: string): string | undefined {
  return nccl.has(symbol) ? undefined : `this libnccl has no ${symbol}`
}

test('device communicators provide the requested resources on every rank', async ({ skip }) => {
  const reason = without('ncclDevCommCreate')
  if (reason !== undefined) return skip(reason)
  const made = await Promise.all(
    communicators.map((communicator) =>
      communicator.createDeviceCommunicator({
        lsaBarrierCount: 4,
        resources: {
          barrier: { kind: 'lsaBarrier', team: communicator.team('lsa'), barriers: 8 },
          exchange: { kind: 'llA2A', blocks: 2, slots: 16 },
          scratch: { kind: 'buffer', byteLength: 1000, alignment: 256 },
        },
        teams: { all: { team: communicator.team('lsa') } },
      }),
    ),
  )
  for (const [rank, one] of made.entries()) {
    expect(one.read()).toMatchObject({ rank, nRanks: deviceCount, lsaRank: rank, lsaSize: deviceCount })
    expect(one.bytes()).toHaveLength(240)
    expect(new Int32Array(one.bytes().buffer, 8, 2)).toEqual(Int32Array.of(rank, deviceCount))
    expect(one.bytes(16)).toHaveLength(16)
    const { barrier, exchange, scratch } = one.resources
    expect(barrier).toMatchObject({ kind: 'lsaBarrier', fields: { nBarriers: 8 } })
    expect(exchange).toMatchObject({ kind: 'llA2A', fields: { nSlots: 16 } })
    const places = [barrier, exchange, scratch].map((resource) => resource.fields['bufHandle'])
    expect(new Set(places).size).toBe(3)
    expect(barrier.bytes).toHaveLength(8)
    // @ts-expect-error This resource was not requested.
    expect(one.resources.other).toBeUndefined()
    expect(one.multimem).toEqual({ all: undefined })
    // All ranks have the same handles: a kernel uses its own handle for a peer's resource.
    expect(one.resources).toEqual(made[0]?.resources)
  }
  await Promise.all(made.map((one) => one.dispose()))
  for (const one of made) {
    expect(one.disposed).toBe(true)
    expect(errorOf(() => one.bytes())).toBeInstanceOf(DisposedError)
    expect(errorOf(() => one.read())).toBeInstanceOf(DisposedError)
    await one.dispose()
  }
})

test('device communicators end with their communicator, by destroy and by abort', async ({ skip }) => {
  const reason = without('ncclDevCommCreate')
  if (reason !== undefined) return skip(reason)
  for (const end of ['destroy', 'abort'] as const) {
    const own = await Communicator.initAll([0, 1])
    const made: DeviceCommunicator[] = await Promise.all(own.map((one) => one.createDeviceCommunicator()))
    await Promise.all(own.map((communicator) => communicator[end]()))
    for (const one of made) {
      expect(one.disposed).toBe(true)
      await one.dispose()
    }
  }
})

test('device communicators are disposed after the work of their device completes', async ({ skip }) => {
  const reason = without('ncclDevCommCreate')
  if (reason !== undefined) return skip(reason)
  const own = await connected((await Communicator.initAll([0, 1])) as [Communicator, Communicator])
  const made = await Promise.all(own.map((one) => one.createDeviceCommunicator()))
  const streams = own.map(({ deviceOrdinal }) => new TestStream(deviceOrdinal))
  const memory = own.map(({ deviceOrdinal }) => TestMemory.zeros(deviceOrdinal, 'f32', 4))
  const reduce = (rank: 0 | 1) => {
    const place = memory[rank] as TestMemory
    own[rank].allReduce(place, place, { stream: streams[rank] as TestStream })
  }
  reduce(0)
  let isGone = false
  const ending = made[0]?.dispose().then(() => {
    isGone = true
  })
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(isGone).toBe(false)
  reduce(1)
  await ending
  await made[1]?.dispose()
  await Promise.all(own.map((one) => one.destroy()))
  for (const one of [...streams, ...memory]) one.dispose()
})

test('wrong requirements reject on the rank that passed them', async ({ skip }) => {
  const reason = without('ncclDevCommCreate')
  if (reason !== undefined) return skip(reason)
  const communicator = communicators[0] as Communicator
  const team = communicator.team('lsa')
  const create = (options: object) => communicator.createDeviceCommunicator(options)
  await expect(create(null as never)).rejects.toThrow(TypeError)
  await expect(create({ lsaBarrierCount: -1 })).rejects.toThrow(RangeError)
  await expect(create({ lsaBarrierCount: '1' })).rejects.toThrow(TypeError)
  await expect(create({ noSuchThing: 1 })).rejects.toThrow("not 'noSuchThing'")
  await expect(create({ ginConnectionType: 'all' })).rejects.toThrow("'none', 'full' or 'rail'")
  await expect(create({ resources: null })).rejects.toThrow('resources must be a plain object')
  await expect(create({ teams: 'all' })).rejects.toThrow('teams must be a plain object')
  await expect(create({ resources: { one: { kind: 'cake' } } })).rejects.toThrow('resources.one.kind must be')
  await expect(create({ resources: { one: { kind: 'buffer', byteLength: -1 } } })).rejects.toThrow(RangeError)
  await expect(create({ teams: { one: { team: { ...team, size: 0 } } } })).rejects.toThrow(RangeError)
  await expect(create({ teams: { one: { team, multimem: 1 } } })).rejects.toThrow(TypeError)
  await expect(create({ teams: { one: null } })).rejects.toThrow(TypeError)
})

test('the multimem address of a team belongs to the team that requested it', async ({ skip }) => {
  const reason = without('ncclDevCommCreate')
  if (reason !== undefined) return skip(reason)
  const teams = (communicator: Communicator) => {
    const team = communicator.team('lsa')
    return { none: { team }, first: { team, multimem: true }, last: { team, multimem: true } }
  }
  const made = await Promise.all(
    communicators.map((communicator) => communicator.createDeviceCommunicator({ teams: teams(communicator) })),
  )
  for (const { multimem } of made) {
    expect(Object.keys(multimem)).toEqual(['none', 'first', 'last'])
    expect(multimem.none).toBeUndefined()
    expect(multimem.last === undefined).toBe(multimem.first === undefined)
  }
  await Promise.all(made.map((one) => one.dispose()))
})

test('a device communicator returns as many bytes as the kernel was compiled for', async ({ skip }) => {
  const reason = without('ncclDevCommCreate')
  if (reason !== undefined) return skip(reason)
  const made = await Promise.all(communicators.map((communicator) => communicator.createDeviceCommunicator()))
  const [one] = made as [DeviceCommunicator]
  expect(one.bytes(1)).toHaveLength(1)
  expect(one.bytes(4096)).toHaveLength(4096)
  for (const length of [0, 4097]) {
    const words = `DeviceCommunicator.bytes: byteLength must be an integer from 1 to 4096, not ${length}`
    expect(() => one.bytes(length)).toThrow(words)
  }
  // Changing the copy does not change the device communicator.
  one.bytes().fill(0)
  expect(one.read().nRanks).toBe(deviceCount)
  await Promise.all(made.map((each) => each.dispose()))
})

test('a buffer resource has the requested size, and defaults for missing options', ({ skip }) => {
  const reason = without('ncclDevCommCreate')
  if (reason !== undefined) return skip(reason)
  const needs = (more: object) => deviceResourceNeeds({ kind: 'buffer', byteLength: 5, ...more })
  expect(needs({})).toEqual({ byteLength: 5, alignment: 16, ginSignals: 0, ginCounters: 0 })
  const all = { byteLength: 7, alignment: 64, ginSignals: 2, ginCounters: 3 }
  expect(needs(all)).toEqual(all)
  for (const alignment of [48, 0]) {
    expect(() => needs({ alignment })).toThrow(
      `deviceResourceNeeds: resource.alignment must be a power of two, not ${alignment}`,
    )
  }
})

test('a device communicator prints one line, also after disposal', async ({ skip }) => {
  const reason = without('ncclDevCommCreate')
  if (reason !== undefined) return skip(reason)
  const made = await Promise.all(communicators.map((communicator) => communicator.createDeviceCommunicator()))
  expect(inspect(made[1])).toBe('DeviceCommunicator { rank: 1, worldSize: 3, deviceOrdinal: 1 }')
  await Promise.all(made.map((one) => one.dispose()))
  expect(inspect(made[1])).toBe('DeviceCommunicator { rank: 1, worldSize: 3, deviceOrdinal: 1, disposed: true }')
})
