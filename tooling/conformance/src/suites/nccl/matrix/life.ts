import assert from 'node:assert/strict'
import type { ConformanceCase, Suite } from '../../../suite.js'
import { Crews, range, ranksAvailable } from './crews.js'
import { has, someLayout, someTrials } from './some.js'

const notBlocking: ConformanceCase = {
  name: 'communicators that do not block: collectives, a split, windows',
  requires: { ranks: 2 },
  timeout: 300_000,
  async run(t) {
    if (!has(t, 21801, 'ncclCommSplit')) return
    const worldSize = t.random.integer(2, ranksAvailable(t))
    const crews = await Crews.join(t, someLayout(t, worldSize), 0, false)
    await crews.try(someTrials(t))
    const places = await crews.run<unknown[]>('derive', () => ({ kind: 'split' }))
    assert.equal(places.flat().length, worldSize)
    await crews.try(someTrials(t))
    if (has(t, 22703, 'windows')) await crews.run('open', () => ({ kind: 'window', bytes: 2 ** 21 }))
    await crews.leave()
    t.note(`${worldSize} ranks`)
  },
}

const revoke: ConformanceCase = {
  name: 'communicators are revoked while a rank waits; parts of them work',
  requires: { ranks: 2 },
  timeout: 300_000,
  async run(t) {
    if (!has(t, 22807, 'ncclCommRevoke')) return
    const worldSize = t.random.integer(2, ranksAvailable(t))
    const crews = await Crews.join(
      t,
      range(worldSize).map((rank) => [rank]),
    )
    for (const failures of await crews.run<string[]>('revoke')) assert.deepEqual(failures, [])
    await crews.try(someTrials(t))
    await crews.leave()
    t.note(`${worldSize} ranks`)
  },
}

const suspend: ConformanceCase = {
  name: 'communicators give their memory back, and take it again',
  requires: { ranks: 2 },
  timeout: 300_000,
  async run(t) {
    if (!has(t, 22907, 'ncclCommSuspend')) return
    const worldSize = t.random.integer(2, ranksAvailable(t))
    const crews = await Crews.join(t, someLayout(t, worldSize))
    for (const { failures, suspendable } of await crews.run<{ failures: string[]; suspendable: string }>('suspend')) {
      assert.deepEqual(failures, [])
      t.note(`${worldSize} ranks, ${suspendable} bytes`)
    }
    await crews.try(someTrials(t))
    await crews.leave()
  },
}

export const lifeSuite: Suite = { name: 'nccl life', cases: [notBlocking, revoke, suspend] }
