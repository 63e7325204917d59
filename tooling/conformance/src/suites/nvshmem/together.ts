import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Team } from '@shoal/nvshmem'
import { mapped, memory } from './ownMemory.js'
import { elementsIn, type Pe } from './pe.js'

/** Tests of ordering and grouping that all PEs run together. Each PE gets the same seed. */
export const joint: { readonly [name: string]: (pe: Pe, seed: number) => Promise<void> } = {
  barriers,
  teams,
  ordering,
  memory,
  mapped,
}

const wait = { timeout: 30_000 }

/** No PE may leave a barrier before the last PE enters it. Earlier puts must have arrived. */
async function barriers(pe: Pe, seed: number): Promise<void> {
  const { session, stream, teams: known } = pe
  const { pe: own, peCount } = session
  const elements = elementsIn(pe.target, 'i64', peCount)
  const ways: (() => Promise<void> | void)[] = [
    () => session.barrierAll(wait),
    () => session.barrierAllSync(),
    () => session.barrierAllOnStream({ stream }).then(() => stream.synchronize(wait)),
    () => session.world.barrier(wait),
    () => session.world.barrierSync(),
    () => session.world.barrierOnStream({ stream }).then(() => stream.synchronize(wait)),
    () => session.quiet(wait).then(() => session.syncAll(wait)),
    () => session.quiet(wait).then(() => session.syncAllSync()),
    () =>
      session
        .quiet(wait)
        .then(() => session.syncAllOnStream({ stream }))
        .then(() => stream.synchronize(wait)),
    () => session.quiet(wait).then(() => session.world.sync(wait)),
    () => session.quiet(wait).then(() => session.world.syncSync()),
    () =>
      session
        .quiet(wait)
        .then(() => session.world.syncOnStream({ stream }))
        .then(() => stream.synchronize(wait)),
  ]
  await elements.fill(-1n)
  await session.barrierAll(wait)
  for (const [round, barrier] of ways.entries()) {
    // In each round another PE is late.
    if ((round + seed) % peCount === own) await sleep(15)
    for (let to = 0; to < peCount; to += 1) {
      await session.putElement(elements, BigInt(round * 100 + own), { pe: to, index: own })
    }
    await barrier()
    const got = await elements.toArray()
    const want = Array.from({ length: peCount }, (_, from) => BigInt(round * 100 + from))
    assert.deepEqual([...got], want, `after barrier ${round}`)
    await session.barrierAll(wait)
  }
  assert.equal(known.world, session.world)
}

/** Tests teams of every shape: their members, the members' numbers, and that teams do not mix. */
async function teams(pe: Pe, seed: number): Promise<void> {
  const { session } = pe
  const { pe: own, peCount, world } = session
  assert.deepEqual([world.pe, world.peCount], [own, peCount])
  for (let other = 0; other < peCount; other += 1) {
    assert.equal(await session.shared.translate(other, world), other)
  }

  const start = seed % peCount
  const stride = 1 + (seed % 3)
  const size = Math.floor((peCount - 1 - start) / stride) + 1
  const members = Array.from({ length: size }, (_, index) => start + index * stride)
  const split = await world.splitStrided({ start, stride, size })
  await checkTeam(pe, split, members)

  const xRange = 1 + (seed % peCount)
  const { x, y } = await world.split2d({ xRange })
  const row = Math.floor(own / xRange)
  const all = Array.from({ length: peCount }, (_, index) => index)
  await checkTeam(
    pe,
    x,
    all.filter((one) => Math.floor(one / xRange) === row),
  )
  await checkTeam(
    pe,
    y,
    all.filter((one) => one % xRange === own % xRange),
  )
}

async function checkTeam(pe: Pe, team: Team | undefined, members: readonly number[]): Promise<void> {
  const { session } = pe
  const number = members.indexOf(session.pe)
  if (number < 0) {
    assert.equal(team, undefined)
    return
  }
  assert.ok(team)
  assert.deepEqual([team.pe, team.peCount], [number, members.length])
  for (const [index, member] of members.entries()) {
    assert.equal(await team.translate(index, session.world), member)
    assert.equal(await session.world.translate(member, team), index)
  }
  for (let other = 0; other < session.peCount; other += 1) {
    if (!members.includes(other)) assert.equal(await session.world.translate(other, team), undefined)
  }
  const source = elementsIn(pe.source, 'i32', 1)
  const target = elementsIn(pe.target, 'i32', 1)
  await source.fill(2 ** session.pe)
  await team.barrier(wait)
  await team.reduce(target, source, { op: 'sum', ...wait })
  const want = members.reduce((sum, member) => sum + 2 ** member, 0)
  assert.equal((await target.toArray())[0], want)
  await team.barrier(wait)
  await team.dispose(wait)
  assert.ok(team.disposed)
}

/** Puts before a fence must arrive before puts after it. */
async function ordering(pe: Pe, seed: number): Promise<void> {
  const { session } = pe
  const { pe: own, peCount } = session
  const distance = 1 + (seed % Math.max(1, peCount - 1))
  const to = (own + distance) % peCount
  const data = elementsIn(pe.target, 'i64', 1024)
  const flags = elementsIn(pe.source, 'i64', 1)
  await data.fill(-1n)
  await flags.fill(0n)
  await session.barrierAll(wait)
  for (let round = 1; round <= 20; round += 1) {
    await session.put(data, new BigInt64Array(1024).fill(BigInt(round)), { pe: to })
    await session.fence(wait)
    await session.putElement(flags, BigInt(round), { pe: to })
    while (((await flags.toArray())[0] as bigint) < BigInt(round)) await sleep(0)
    const got = await data.toArray()
    const stale = got.findIndex((value) => value < BigInt(round))
    assert.equal(stale, -1, `element ${stale} is ${got[stale]} after flag ${round}`)
    await session.barrierAll(wait)
  }
}
