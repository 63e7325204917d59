import assert from 'node:assert/strict'
import { ncclVersion } from '@shoal/nccl'
import type { Suite } from '../../../suite.js'
import { joinedCase, oneEach, runWithoutFailure, sampleTrials } from './joinedCase.js'

const notBlocking = joinedCase({
  name: 'communicators that do not block: collectives, a split, windows',
  since: 21801,
  what: 'ncclCommSplit',
  blocking: false,
  async run(t, processes, worldSize) {
    await processes.try(sampleTrials(t))
    const places = await processes.run<unknown[]>('derive', () => ({ kind: 'split' }))
    assert.equal(places.flat().length, worldSize)
    await processes.try(sampleTrials(t))
    if (ncclVersion().value >= 22703) await processes.run('open', () => ({ kind: 'window', bytes: 2 ** 21 }))
    return `${worldSize} ranks`
  },
})

const revoke = joinedCase({
  name: 'communicators are revoked while a rank waits; parts of them work',
  since: 22807,
  what: 'ncclCommRevoke',
  layout: oneEach,
  async run(t, processes, worldSize) {
    await runWithoutFailure(processes, 'revoke')
    await processes.try(sampleTrials(t))
    return `${worldSize} ranks`
  },
})

const suspend = joinedCase({
  name: 'communicators give their memory back, and take it again',
  since: 22907,
  what: 'ncclCommSuspend',
  async run(t, processes, worldSize) {
    const answers = await processes.run<{ failures: string[]; suspendable: string }>('suspend')
    for (const { failures } of answers) assert.deepEqual(failures, [])
    await processes.try(sampleTrials(t))
    return `${worldSize} ranks, ${answers.map(({ suspendable }) => suspendable).join(', ')} bytes`
  },
})

export const lifecycleSuite: Suite = { name: 'nccl life', cases: [notBlocking, revoke, suspend] }
