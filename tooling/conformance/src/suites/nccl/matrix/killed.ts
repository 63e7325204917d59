import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CaseContext, ConformanceCase, Suite } from '../../../suite.js'
import type { Child } from '../../../support/child.js'
import type { Crew, CrewReport, Outcome } from './crewProcess.js'
import { Crews, range, ranksAvailable } from './crews.js'
import { everyTrial } from './trial.js'

/** How long the others wait before they give up, in milliseconds. */
const patienceOf = (t: CaseContext): number => (t.isSoftware ? 2000 : 8000)
/** And how much longer it may take them to say so. */
const grace = 10_000

/** What the software device keeps in shared memory; hardware's libraries have their own ways. */
function sharedMemory(t: CaseContext): string[] {
  return t.isSoftware ? readdirSync('/dev/shm').filter((name) => name.startsWith('shoal-nccl-')) : []
}

interface Scene {
  readonly patience: number
  readonly crews: Crews
  readonly worldSize: number
  readonly victim: number
  readonly survivors: readonly { readonly rank: number; readonly child: Child }[]
}

/** Processes that have not joined anything yet. */
function begin(t: CaseContext): Scene {
  const worldSize = Math.min(4, ranksAvailable(t))
  const victim = t.random.integer(0, worldSize - 1)
  const crews = Crews.start(
    t,
    range(worldSize).map((rank) => [rank]),
  )
  const survivors = crews.all.flatMap(({ child, ranks: [rank = 0] }) => (rank === victim ? [] : [{ rank, child }]))
  return { patience: patienceOf(t), crews, worldSize, victim, survivors }
}

async function kill({ crews, victim }: Scene): Promise<void> {
  const end = await crews.all[victim]?.child.kill()
  assert.deepEqual(end, { code: null, signal: 'SIGKILL' })
}

/** Each survivor has said within its time what it was waiting for. */
function checkOutcomes(t: CaseContext, outcomes: readonly Outcome[], names: readonly string[]): void {
  for (const { name, message, milliseconds } of outcomes) {
    assert.ok(name !== undefined && names.includes(name), `${name}: ${message}`)
    assert.match(message, /rank \d of \d|ncclCommInitRank/)
    assert.ok(milliseconds < patienceOf(t) + grace, `${milliseconds} ms`)
  }
  t.note(`told after ${outcomes.map(({ milliseconds }) => milliseconds.toFixed(0)).join(', ')} ms`)
}

/** Those that are left make a new communicator, and it works. */
async function goOn(t: CaseContext, { survivors }: Scene): Promise<void> {
  const id = (await survivors[0]?.child.run('createId')) as string
  const worldSize = survivors.length
  await Promise.all(
    survivors.map(({ child, rank }, index) =>
      child.run('join', { worldSize, ranks: [index], devices: [rank], id } satisfies Crew),
    ),
  )
  const trials = everyTrial(t.random, 1000).slice(0, 30)
  for (const report of await Promise.all(survivors.map(({ child }) => child.run('run', trials)))) {
    const { done, wrongs, failures } = report as CrewReport
    assert.deepEqual({ done, wrongs, failures }, { done: trials.length, wrongs: 0, failures: [] })
  }
  await Promise.all(survivors.map(({ child }) => child.run('leave')))
  for (const { child } of survivors) assert.deepEqual(await child.leave(), { code: 0, signal: null })
}

/** Nothing is left of it all. What other processes of this machine have in use meanwhile goes when they end. */
async function checkNothingLeft(t: CaseContext, before: readonly string[]): Promise<void> {
  const suspects = sharedMemory(t).filter((name) => !before.includes(name))
  const left = (): string[] => sharedMemory(t).filter((name) => suspects.includes(name))
  for (let wait = 0; wait < 200 && left().length > 0; wait += 1) await sleep(100)
  assert.deepEqual(left(), [])
}

function killedCase(
  when: string,
  lose: (scene: Scene) => Promise<Outcome[]>,
  names: readonly string[],
): ConformanceCase {
  return {
    name: `a rank is killed ${when}: the others say so in time, and go on without it`,
    requires: { ranks: 2 },
    timeout: 120_000,
    async run(t) {
      const before = sharedMemory(t)
      const scene = begin(t)
      checkOutcomes(t, await lose(scene), names)
      await goOn(t, scene)
      await checkNothingLeft(t, before)
    },
  }
}

async function joinAll({ crews, worldSize }: Scene): Promise<void> {
  const id = (await crews.first.run('createId')) as string
  await crews.run('join', (ranks): Crew => ({ worldSize, ranks, id }))
}

async function beforeInit(scene: Scene): Promise<Outcome[]> {
  const { patience, worldSize, survivors } = scene
  const id = (await survivors[0]?.child.run('createId')) as string
  await kill(scene)
  const join = ({ child, rank }: Scene['survivors'][number]): Promise<unknown> =>
    child.run('joinIfPossible', { worldSize, ranks: [rank], id, patience } satisfies Crew)
  return (await Promise.all(survivors.map(join))) as Outcome[]
}

/** It has begun to join when it is killed; one more rank, that nobody is, keeps all of them waiting. */
async function inInit(scene: Scene): Promise<Outcome[]> {
  const { patience, crews, worldSize, survivors, victim } = scene
  const id = (await survivors[0]?.child.run('createId')) as string
  const crew = (rank: number): Crew => ({ worldSize: worldSize + 1, ranks: [rank], id, patience })
  const joining = survivors.map(({ child, rank }) => child.run('joinIfPossible', crew(rank)))
  const lost = crews.all[victim]?.child.run('joinIfPossible', crew(victim)).catch(() => undefined)
  await sleep(1000)
  await kill(scene)
  await lost
  return (await Promise.all(joining)) as Outcome[]
}

async function inCollective(scene: Scene): Promise<Outcome[]> {
  await joinAll(scene)
  const running = scene.survivors.map(({ child }) => child.run('untilItFails', scene.patience))
  const lost = scene.crews.all[scene.victim]?.child.run('untilItFails', scene.patience).catch(() => undefined)
  await sleep(500)
  await kill(scene)
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
        const before = sharedMemory(t)
        const scene = begin(t)
        await joinAll(scene)
        await kill(scene)
        const ends = scene.survivors.map(({ child }) => child.run('destroyWithin', scene.patience) as Promise<Outcome>)
        for (const { name, message, milliseconds } of await Promise.all(ends)) {
          // Whether NCCL needs the lost rank for it is NCCL's affair.
          assert.ok(name === undefined || name === 'CommunicatorAbortedError', `${name}: ${message}`)
          assert.ok(milliseconds < scene.patience + grace, `${milliseconds} ms`)
        }
        await goOn(t, scene)
        await checkNothingLeft(t, before)
      },
    },
  ],
}
