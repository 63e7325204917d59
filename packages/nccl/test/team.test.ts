import { inspect } from 'node:util'
import { Communicator } from '@shoal/nccl'
import { nccl } from '@shoal/nccl-sys'
import { DisposedError } from '@shoal/types'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { deviceCount, errorOf, startSoftwareDevice } from './fixtures/device.js'

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

test('team() returns all ranks, ranks with direct access, and ranks per rail', ({ skip }) => {
  const reason = without('ncclTeamWorld')
  if (reason !== undefined) return skip(reason)
  for (const [rank, communicator] of communicators.entries()) {
    const world = communicator.team('world')
    expect(world).toMatchObject({ size: deviceCount, rank, stride: 1 })
    // On one machine all devices access each other's memory, and each rail has one rank.
    const lsa = communicator.team('lsa')
    expect(lsa).toMatchObject({ size: deviceCount, rank, stride: 1 })
    expect(communicator.team('rail')).toMatchObject({ size: 1, rank: 0 })
    for (const other of ranks) {
      expect(world.toWorld(other)).toBe(other)
      expect(world.toLsa(other)).toBe(other)
      expect(lsa.toWorld(other)).toBe(other)
    }
    expect(world.inner(1)).toMatchObject({ size: 1, rank: 0, stride: 1 })
    expect(world.outer(1)).toMatchObject({ size: deviceCount, rank, stride: 1 })
    expect(world.inner(deviceCount)).toMatchObject({ size: deviceCount, rank, stride: 1 })
    expect(world.outer(deviceCount)).toMatchObject({ size: 1, rank: 0, stride: deviceCount })
    expect(() => world.inner(2)).toThrow('must be a divisor of the')
    expect(() => world.outer(0)).toThrow(RangeError)
    expect(() => world.toWorld(deviceCount)).toThrow(RangeError)
    expect(() => world.toLsa('0' as never)).toThrow(TypeError)
  }
  expect(() => communicators[0]?.team('moon' as never)).toThrow("name must be 'world', 'lsa' or 'rail', not 'moon'")
})

test('team() of an ended communicator is refused', async ({ skip }) => {
  const reason = without('ncclTeamWorld')
  if (reason !== undefined) return skip(reason)
  const [communicator] = (await Communicator.initAll([0])) as [Communicator]
  const world = communicator.team('world')
  await communicator.destroy()
  expect(errorOf(() => world.toWorld(0))).toBeInstanceOf(DisposedError)
  expect(errorOf(() => communicator.team('world'))).toBeInstanceOf(DisposedError)
})

test('a team prints one line', ({ skip }) => {
  const reason = without('ncclTeamWorld')
  if (reason !== undefined) return skip(reason)
  expect(inspect(communicators[2]?.team('world'))).toBe('Team { size: 3, rank: 2, stride: 1 }')
})
