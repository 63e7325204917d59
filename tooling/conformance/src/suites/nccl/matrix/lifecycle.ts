import assert from 'node:assert/strict'
import type { ConformanceCase, Suite } from '../../../suite.js'
import { ProcessGroup, range, ranksAvailable } from './processGroup.js'
import { has, randomLayout, sampleTrials } from './samples.js'

const notBlocking: ConformanceCase = {
  name: 'communicators that do not block: collectives, a split, windows',
  requires: { ranks: 2 },
  timeout: 300_000,
  async run(t) {
    if (!has(t, 21801, 'ncclCommSplit')) return
    const worldSize = t.random.integer(2, ranksAvailable(t))
    const processes = await ProcessGroup.join(t, randomLayout(t, worldSize), 0, false)
    await processes.try(sampleTrials(t))
    const places = await processes.run<unknown[]>('derive', () => ({ kind: 'split' }))
    assert.equal(places.flat().length, worldSize)
    await processes.try(sampleTrials(t))
    if (has(t, 22703, 'windows')) await processes.run('open', () => ({ kind: 'window', bytes: 2 ** 21 }))
    await processes.leave()
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
    const processes = await ProcessGroup.join(
      t,
      range(worldSize).map((rank) => [rank]),
    )
    for (const failures of await processes.run<string[]>('revoke')) assert.deepEqual(failures, [])
    await processes.try(sampleTrials(t))
    await processes.leave()
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
    const processes = await ProcessGroup.join(t, randomLayout(t, worldSize))
    for (const { failures, suspendable } of await processes.run<{ failures: string[]; suspendable: string }>(
      'suspend',
    )) {
      assert.deepEqual(failures, [])
      t.note(`${worldSize} ranks, ${suspendable} bytes`)
    }
    await processes.try(sampleTrials(t))
    await processes.leave()
  },
}

export const lifecycleSuite: Suite = { name: 'nccl life', cases: [notBlocking, revoke, suspend] }
