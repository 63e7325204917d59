import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CaseContext, ConformanceCase, Suite } from '../../../suite.js'
import type { Child } from '../../../support/child.js'
import { assertSharedMemoryGone, sharedMemory } from '../../../support/leftovers.js'
import { oneEach } from './joinedCase.js'
import { ProcessGroup, ranksAvailable } from './processGroup.js'
import type { Outcome, RankGroup, TrialReport } from './rankGroupProcess.js'
import { everyTrial } from './trial.js'

/** The milliseconds after which the survivors must give up. */
const timeLimitOf = (t: CaseContext): number => (t.isSoftware ? 2000 : 8000)
/** The further milliseconds that they may need to report it. */
const grace = 10_000

interface Setup {
  readonly timeLimit: number
  readonly processes: ProcessGroup
  readonly worldSize: number
  readonly killedRank: number
  readonly survivors: readonly { readonly rank: number; readonly child: Child }[]
}

/** Starts processes that have not joined a communicator yet. */
function begin(t: CaseContext): Setup {
  const worldSize = Math.min(4, ranksAvailable(t))
  const killedRank = t.random.integer(0, worldSize - 1)
  const processes = ProcessGroup.start(t, oneEach(worldSize))
  const survivors = processes.all.flatMap(({ child, ranks: [rank = 0] }) =>
    rank === killedRank ? [] : [{ rank, child }],
  )
  return { timeLimit: timeLimitOf(t), processes, worldSize, killedRank, survivors }
}

async function kill({ processes, killedRank }: Setup): Promise<void> {
  const end = await processes.all[killedRank]?.child.kill()
  assert.deepEqual(end, { code: null, signal: 'SIGKILL' })
}

/** Checks that each survivor reported in time in which call it was waiting. */
function checkOutcomes(t: CaseContext, outcomes: readonly Outcome[], names: readonly string[]): void {
  for (const { name, message, milliseconds } of outcomes) {
    assert.ok(name !== undefined && names.includes(name), `${name}: ${message}`)
    assert.match(message, /rank \d of \d|ncclCommInitRank/)
    assert.ok(milliseconds < timeLimitOf(t) + grace, `${milliseconds} ms`)
  }
  t.note(`told after ${outcomes.map(({ milliseconds }) => milliseconds.toFixed(0)).join(', ')} ms`)
}

/** Checks that the survivors can create a new communicator that works. */
async function goOn(t: CaseContext, { survivors }: Setup): Promise<void> {
  const id = (await survivors[0]?.child.run('createId')) as string
  const worldSize = survivors.length
  await Promise.all(
    survivors.map(({ child, rank }, index) =>
      child.run('join', { worldSize, ranks: [index], devices: [rank], id } satisfies RankGroup),
    ),
  )
  const trials = everyTrial(t.random, 1000).slice(0, 30)
  for (const report of await Promise.all(survivors.map(({ child }) => child.run('run', trials)))) {
    const { done, wrongCount, failures } = report as TrialReport
    assert.deepEqual({ done, wrongCount, failures }, { done: trials.length, wrongCount: 0, failures: [] })
  }
  await Promise.all(survivors.map(({ child }) => child.run('leave')))
  for (const { child } of survivors) assert.deepEqual(await child.leave(), { code: 0, signal: null })
}

function killedCase(
  when: string,
  lose: (setup: Setup) => Promise<Outcome[]>,
  names: readonly string[],
): ConformanceCase {
  return {
    name: `a rank is killed ${when}: the others say so in time, and go on without it`,
    requires: { ranks: 2 },
    timeout: 120_000,
    async run(t) {
      const before = sharedMemory(t, 'nccl')
      const setup = begin(t)
      checkOutcomes(t, await lose(setup), names)
      await goOn(t, setup)
      await assertSharedMemoryGone(t, 'nccl', before)
    },
  }
}

async function joinAll({ processes, worldSize }: Setup): Promise<void> {
  const id = (await processes.first.run('createId')) as string
  await processes.run('join', (ranks): RankGroup => ({ worldSize, ranks, id }))
}

async function beforeInit(setup: Setup): Promise<Outcome[]> {
  const { timeLimit, worldSize, survivors } = setup
  const id = (await survivors[0]?.child.run('createId')) as string
  await kill(setup)
  const join = ({ child, rank }: Setup['survivors'][number]): Promise<unknown> =>
    child.run('joinIfPossible', { worldSize, ranks: [rank], id, timeLimit } satisfies RankGroup)
  return (await Promise.all(survivors.map(join))) as Outcome[]
}

/** The rank is killed after it began to join. One more rank never joins, so all ranks wait. */
async function inInit(setup: Setup): Promise<Outcome[]> {
  const { timeLimit, processes, worldSize, survivors, killedRank } = setup
  const id = (await survivors[0]?.child.run('createId')) as string
  const rankGroup = (rank: number): RankGroup => ({ worldSize: worldSize + 1, ranks: [rank], id, timeLimit })
  const joining = survivors.map(({ child, rank }) => child.run('joinIfPossible', rankGroup(rank)))
  const lost = processes.all[killedRank]?.child.run('joinIfPossible', rankGroup(killedRank)).catch(() => undefined)
  await sleep(1000)
  await kill(setup)
  await lost
  return (await Promise.all(joining)) as Outcome[]
}

async function inCollective(setup: Setup): Promise<Outcome[]> {
  await joinAll(setup)
  const running = setup.survivors.map(({ child }) => child.run('untilItFails', setup.timeLimit))
  const lost = setup.processes.all[setup.killedRank]?.child.run('untilItFails', setup.timeLimit).catch(() => undefined)
  await sleep(500)
  await kill(setup)
  await lost
  return (await Promise.all(running)) as Outcome[]
}

export const killedSuite: Suite = {
  name: 'nccl killed',
  cases: [
    killedCase('before init', beforeInit, ['TimeoutError', 'StatusError']),
    killedCase('in init', inInit, ['TimeoutError', 'StatusError']),
    killedCase('in a collective', inCollective, ['CommunicatorAbortedError']),
    {
      name: 'a rank is killed instead of destroying: the others end in time, and go on without it',
      requires: { ranks: 2 },
      timeout: 120_000,
      async run(t) {
        const before = sharedMemory(t, 'nccl')
        const setup = begin(t)
        await joinAll(setup)
        await kill(setup)
        const ends = setup.survivors.map(({ child }) => child.run('destroyWithin', setup.timeLimit) as Promise<Outcome>)
        for (const { name, message, milliseconds } of await Promise.all(ends)) {
          // NCCL may or may not need the lost rank here.
          assert.ok(name === undefined || name === 'CommunicatorAbortedError', `${name}: ${message}`)
          assert.ok(milliseconds < setup.timeLimit + grace, `${milliseconds} ms`)
        }
        await goOn(t, setup)
        await assertSharedMemoryGone(t, 'nccl', before)
      },
    },
  ],
}
