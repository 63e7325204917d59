import { expect, test } from 'vitest'
// Internal: tests which ranks are admitted, without connections.
import { Admission, type ServedJob } from '../src/rendezvous/admission.js'
import {
  hashOf,
  type Introducing,
  type Introduction,
  makeGreeting,
  makeIntroduction,
  makeRefusal,
  readIntroduction,
  readRefusal,
  refusalBytes,
} from '../src/rendezvous/handshake.js'
import { RendezvousState } from '../src/rendezvous/state.js'

const job: ServedJob = {
  instance: 'ab'.repeat(16),
  job: 'slurm, A=1',
  place: 'm',
  launch: 'l',
  localWorldSize: 0,
  pid: 10,
}
const first: Introducing = { ...job, rank: 0, worldSize: 4, role: 'rank' }
const other: Introducing = { ...first, instance: '', rank: 1, pid: 11 }

/** Returns the introduction as the other end of a connection decodes it. */
function sent(who: Introducing): Introduction {
  const secret = Buffer.from('x'.repeat(16))
  const { nonce } = makeGreeting()
  return readIntroduction(secret, nonce, makeIntroduction(secret, nonce, who).bytes)!
}

function made(served: ServedJob | null = job) {
  const state = new RendezvousState(4)
  const heard: unknown[] = []
  const admission = new Admission(state, served ?? undefined)
  const come = (who: Introducing) => {
    const denial = admission.admit(sent(who), 'from here')
    if (denial === undefined && who.role === 'rank') {
      state.connected(who.rank, (header) => heard.push(header))
      state.received(who.rank, { op: 'join', id: 0, host: '' }, Buffer.alloc(0))
    }
    return denial?.refusal
  }
  return { state, heard, come }
}

test('an introduction arrives as it was sent', () => {
  const hashes = { job: hashOf('slurm, A=1'), place: hashOf('m'), launch: hashOf('l') }
  expect(sent({ ...first, localWorldSize: 3 })).toMatchObject({
    ...first,
    ...hashes,
    localWorldSize: 3,
    isProven: true,
  })
  const bare = { rank: 2 ** 32 - 1, worldSize: 0, role: 'watch', pid: 1, localWorldSize: 0 } as const
  const nothing = { instance: '', job: '', place: '', launch: '' }
  expect(sent({ ...bare, ...nothing })).toMatchObject({ ...bare, ...nothing })
})

test('a refusal arrives as it was sent, with proof of the secret', () => {
  const [secret, server, client] = [Buffer.from('x'.repeat(16)), Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const bytes = makeRefusal(secret, server, client, 'job', 'the job thére')
  expect(refusalBytes(bytes.subarray(0, 2))).toBeUndefined()
  expect(refusalBytes(bytes)).toBe(bytes.byteLength)
  expect(readRefusal(secret, server, client, bytes)).toEqual({ refusal: 'job', words: 'the job thére' })
  expect(readRefusal(Buffer.from('y'.repeat(16)), server, client, bytes)).toBeUndefined()
  for (let index = 3; index < bytes.byteLength; index += 1) {
    const changed = Buffer.from(bytes)
    changed[index]! ^= 1
    expect(readRefusal(secret, server, client, changed)).toBeUndefined()
  }
})

test('each rank of the job is admitted once', () => {
  const { come, state } = made()
  for (const rank of [3, 1, 2]) expect(come({ ...other, rank })).toBeUndefined()
  expect(come(first)).toBeUndefined()
  expect(state.isComplete).toBe(true)
  expect(come({ ...other, rank: 2 })).toBe('taken')
  state.gone(2, 'lost')
  expect(come({ ...other, rank: 2 })).toBe('gone')
  expect(come({ ...first, instance: '' })).toBe('taken')
})

test.each<[string, Partial<Introducing>, string]>([
  ['of a job of another name', { job: 'slurm, A=2' }, 'job'],
  ['of a job without a name', { job: '' }, 'job'],
  ['that another process of this machine has started', { launch: 'k' }, 'launch'],
  ['beyond the world', { rank: 4 }, 'rank'],
  ['of another world', { worldSize: 5 }, 'worldSize'],
  ['that watches an absent rank', { role: 'watch', rank: 2 }, 'gone'],
])('a rank %s is refused without disturbing the others', (_, changed, refusal) => {
  const { come, heard, state } = made()
  come(first)
  expect(come({ ...other, ...changed })).toBe(refusal)
  expect(heard).toEqual([])
  for (const rank of [1, 2, 3]) expect(come({ ...other, rank })).toBeUndefined()
  expect(state.isComplete).toBe(true)
})

test('a rank on another machine may have another launcher', () => {
  const { come } = made()
  expect(come({ ...other, launch: 'k', place: 'n' })).toBeUndefined()
  expect(come({ ...other, rank: 2, launch: 'l', place: 'n' })).toBe('launch')
  expect(come({ ...other, rank: 2, launch: 'l', place: '' })).toBeUndefined()
})

test('a machine may not exceed its stated number of ranks, and the place of rank 0 is reserved', () => {
  const { come } = made({ ...job, localWorldSize: 2 })
  const two = { ...other, localWorldSize: 2 }
  expect(come({ ...two, rank: 3 })).toBeUndefined()
  expect(come({ ...two, rank: 1 })).toBe('crowded')
  expect(come({ ...two, rank: 1, place: 'n' })).toBeUndefined()
  expect(come({ ...first, localWorldSize: 2 })).toBeUndefined()
})

test('a rank 0 that did not start this rendezvous ends the job, unless the job is complete', () => {
  const { come, heard } = made()
  come(other)
  expect(come({ ...first, instance: 'cd'.repeat(16), pid: 12 })).toBe('starting')
  const message = expect.stringContaining(
    'rank 0 came twice: process 10 on the machine of the rendezvous and process 12',
  )
  expect(heard).toEqual([{ id: 0, failure: { kind: 'refused', message } }])
  // Later ranks receive the same answer.
  expect(come({ ...other, rank: 2 })).toBeUndefined()
  expect(heard).toHaveLength(2)
})

test('timeout errors mention processes that were refused as the missing rank', async () => {
  const { come, state, heard } = made()
  come({ ...other, launch: 'k' })
  state.connected(0, (header) => heard.push(header))
  state.received(0, { op: 'join', id: 1, host: '', timeout: 0 }, Buffer.alloc(0))
  await expect.poll(() => heard.length).toBe(1)
  const message = expect.stringContaining('process 11 said that it is rank 1 and was refused: rank 0 of that job')
  expect(heard).toEqual([{ id: 1, failure: { kind: 'timeout', ranks: [1, 2, 3], message } }])
})

test('if the launcher serves the rendezvous, only the secret is checked', () => {
  const { come, heard } = made(null)
  expect(come({ ...other, job: 'any' })).toBeUndefined()
  expect(come({ ...other, rank: 2, launch: 'k' })).toBeUndefined()
  expect(come({ ...other, rank: 2 })).toBe('taken')
  expect(heard).toEqual([])
})
