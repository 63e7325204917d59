import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Job, RanksLostError, RendezvousTimeoutError } from '@shoal/launch'
import { DisposedError } from '@shoal/types'
import { describe, expect, test, vi } from 'vitest'
import { failuresOf, serve, sleep, startJob } from './support/jobs.js'

// The host name of the code that runs inside. Set before the package reads the function that returns it.
const host = vi.hoisted(() => {
  const { AsyncLocalStorage } = process.getBuiltinModule('node:async_hooks')
  const os = process.getBuiltinModule('node:os')
  const names = new AsyncLocalStorage<string>()
  const { hostname } = os
  os.hostname = () => names.getStore() ?? hostname()
  process.getBuiltinModule('node:module').syncBuiltinESMExports()
  return names
})

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values)

describe('a lost rank', () => {
  test('rejects all waits for it, and is reported to all ranks', async () => {
    const { rendezvous, jobs } = await startJob(4)
    const [first, , third] = jobs as [Job, Job, Job, Job]
    const told = new Promise((resolve) => first.lost.addEventListener('abort', resolve, { once: true }))
    const waiting = failuresOf([
      first.barrier('start'),
      third.gather('sizes', bytes()),
      third.share('id', () => bytes(), { root: 1 }),
      first.get('key'),
    ])
    await sleep(100)
    rendezvous.server.gone(1, 'lost')
    for (const error of await waiting) {
      expect(error).toBeInstanceOf(RanksLostError)
      expect((error as RanksLostError).ranks).toEqual([1])
    }
    await told
    expect(first.lostRanks).toEqual([1])
    expect(first.lost.reason).toMatchObject({ code: 'SHOAL_RANKS_LOST', ranks: [1], message: 'rank 1 was lost' })
    // Calls that start afterwards do not wait either.
    const later = await failuresOf([first.barrier('b'), third.get('c'), third.share('d', () => bytes(), { root: 1 })])
    for (const error of later) expect(error).toBeInstanceOf(RanksLostError)
    // Calls that do not need the rank still work.
    await first.set('still', bytes(4))
    expect(await third.get('still')).toEqual(bytes(4))
    expect(await Promise.all([first.share('e', () => bytes(6)), third.share('e', () => bytes())])).toEqual([
      bytes(6),
      bytes(6),
    ])
  })

  test('is reported while other ranks are still joining', async () => {
    const rendezvous = await serve(3)
    const joining = failuresOf([rendezvous.join(0), rendezvous.join(2)])
    await sleep(50)
    rendezvous.server.gone(1, 'lost')
    for (const error of await joining) expect((error as RanksLostError).ranks).toEqual([1])
    await expect(rendezvous.join(1)).rejects.toThrow('it cannot come back')
  })

  test('that left regularly raises no alarm, and waits for it reject', async () => {
    const { jobs } = await startJob(3)
    const waiting = failuresOf([jobs[0]!.barrier('end'), jobs[1]!.share('id', () => bytes(), { root: 2 })])
    await sleep(100)
    await jobs[2]!.dispose()
    for (const error of await waiting) expect(String(error)).toContain('rank 2 left the job')
    expect(jobs[0]!.lost.aborted).toBe(false)
    expect(jobs[0]!.lostRanks).toEqual([])
    const others = await Promise.all([jobs[0]!.survivors(), jobs[1]!.survivors()])
    await Promise.all(others.map((job) => job.barrier('end')))
  })
})

describe('a program that exits without leaving the job', () => {
  const program = fileURLToPath(new URL('fixtures/rank.mjs', import.meta.url))

  /** Starts ranks 0 and 1 in this process, and rank 2, which does nothing. */
  async function startWithProgram(): Promise<{ jobs: readonly Job[]; ended: Promise<unknown> }> {
    const rendezvous = await serve(3)
    const env = { ...process.env, ...rendezvous.environment(2) }
    const ended = once(spawn(process.execPath, [program, 'end', '300000'], { env, stdio: 'ignore' }), 'exit')
    return { jobs: await Promise.all([rendezvous.join(0), rendezvous.join(1)]), ended }
  }

  async function expectLost(jobs: readonly Job[], error: unknown): Promise<void> {
    expect(String(error)).toContain('rank 2 left the job')
    for (const job of jobs) {
      await expect.poll(() => job.lost.aborted).toBe(true)
      expect(job.lost.reason).toBeInstanceOf(RanksLostError)
      expect(job.lostRanks).toEqual([2])
    }
    const [first, second] = await Promise.all(jobs.map((job) => job.survivors()))
    expect([first!.worldSize, first!.lost.aborted, second!.lost.aborted]).toEqual([2, false, false])
    for (const later of await failuresOf([jobs[0]!.barrier('later')])) expect(later).toBeInstanceOf(DisposedError)
  }

  test('is lost for all ranks as soon as a rank needs it', async () => {
    const { jobs, ended } = await startWithProgram()
    await ended
    // No call needs the rank, so the end of a job is no alarm.
    await jobs[0]!.set('still', bytes(1))
    await expect(jobs[1]!.get('still')).resolves.toEqual(bytes(1))
    await expect(jobs[0]!.share('own', () => bytes(2))).resolves.toEqual(bytes(2))
    expect(jobs.map(({ lost }) => lost.aborted)).toEqual([false, false])
    const [error] = await failuresOf([jobs[0]!.barrier('end')])
    await expectLost(jobs, error)
  })

  test('is lost at once if a rank already waits for it', async () => {
    const { jobs } = await startWithProgram()
    const [error] = await failuresOf([jobs[1]!.share('id', () => bytes(), { root: 2 })])
    await expectLost(jobs, error)
  })
})

describe('survivors of a job', () => {
  test('have new rank numbers, keep their devices, and start with fresh state', async () => {
    const { rendezvous, jobs } = await startJob(4)
    await jobs[0]!.set('key', bytes(1))
    rendezvous.server.gone(1, 'lost')
    const next = await Promise.all([0, 2, 3].map((rank) => jobs[rank]!.survivors()))
    expect(next.map(({ rank, worldSize }) => [rank, worldSize])).toEqual([
      [0, 3],
      [1, 3],
      [2, 3],
    ])
    expect(next.map(({ localRank, deviceOrdinal }) => [localRank, deviceOrdinal])).toEqual([
      [0, 0],
      [2, 2],
      [3, 3],
    ])
    expect(next.map(({ localWorldSize }) => localWorldSize)).toEqual([3, 3, 3])
    expect(next.map(({ lost }) => lost.aborted)).toEqual([false, false, false])
    expect(await Promise.all(next.map((job) => job.share('id', () => bytes(job.rank), { root: 2 })))).toEqual(
      Array(3).fill(bytes(2)),
    )
    const [nothing] = await failuresOf([next[0]!.get('key', { timeout: 30 })])
    expect(nothing).toBeInstanceOf(RendezvousTimeoutError)
    await expect(jobs[0]!.barrier('old')).rejects.toThrow(DisposedError)
    // The old object no longer has any resource that its disposal could end.
    await jobs[0]!.dispose()
    await Promise.all(next.map((job) => job.barrier('new')))
  })

  test('count only the ranks on their node after each loss', async () => {
    const rendezvous = await serve(6)
    const nodes = ['a', 'a', 'b', 'b', 'b', 'c']
    const jobs = await Promise.all(nodes.map((name, rank) => host.run(name, () => rendezvous.join(rank))))
    const counts = (all: readonly Job[]) => all.map(({ localWorldSize }) => localWorldSize)
    expect(counts(jobs)).toEqual([2, 2, 3, 3, 3, 1])
    rendezvous.server.gone(1, 'lost')
    const first = await Promise.all([0, 2, 3, 4, 5].map((rank) => jobs[rank]!.survivors()))
    expect(counts(first)).toEqual([1, 3, 3, 3, 1])
    expect(first.map(({ nodeRank, localRank }) => [nodeRank, localRank])).toEqual(
      [0, 2, 3, 4, 5].map((rank) => [jobs[rank]!.nodeRank, jobs[rank]!.localRank]),
    )
    // The ranks are renumbered: rank 2 of the survivors was rank 3.
    rendezvous.server.gone(3, 'lost')
    const second = await Promise.all([0, 1, 3, 4].map((rank) => first[rank]!.survivors()))
    expect(counts(second)).toEqual([1, 2, 2, 1])
  })

  test('can survive repeated losses', async () => {
    const { rendezvous, jobs } = await startJob(5)
    let current = jobs
    for (const lostOrdinal of [4, 0, 2]) {
      const place = current.findIndex((job) => job.deviceOrdinal === lostOrdinal)
      rendezvous.server.gone(lostOrdinal, 'lost')
      const left = current.filter((job) => job.deviceOrdinal !== lostOrdinal)
      const [error] = await failuresOf([left[0]!.barrier('x')])
      expect((error as RanksLostError).ranks).toEqual([place])
      current = await Promise.all(left.map((job) => job.survivors()))
      await Promise.all(current.map((job) => job.barrier('x')))
    }
    expect(current.map(({ rank, worldSize, deviceOrdinal }) => [rank, worldSize, deviceOrdinal])).toEqual([
      [0, 2, 1],
      [1, 2, 3],
    ])
  })

  test('are separate from requests of an earlier group of survivors', async () => {
    const { rendezvous, jobs } = await startJob(4)
    rendezvous.server.gone(3, 'lost')
    const first = await Promise.all([0, 1, 2].map((rank) => jobs[rank]!.survivors()))
    rendezvous.server.gone(2, 'lost')
    const waiting = [first[0]!.survivors()]
    // When this call is answered, the rendezvous knows about the wait.
    await first[0]!.set('before', bytes(1))
    waiting.push(first[1]!.survivors())
    // This call reaches the rendezvous after the agreement.
    await expect(first[1]!.set('key', bytes(1))).rejects.toThrow('survivors() has ended this job')
    const second = await Promise.all(waiting)
    const [nothing] = await failuresOf([second[0]!.get('key', { timeout: 30 })])
    expect(nothing).toBeInstanceOf(RendezvousTimeoutError)
  })

  test('agree without a rank that is lost meanwhile', async () => {
    const { rendezvous, jobs } = await startJob(4)
    rendezvous.server.gone(3, 'lost')
    const waiting = [jobs[0]!.survivors(), jobs[1]!.survivors()]
    await sleep(100)
    rendezvous.server.gone(2, 'lost')
    expect((await Promise.all(waiting)).map(({ rank, worldSize }) => [rank, worldSize])).toEqual([
      [0, 2],
      [1, 2],
    ])
  })

  test('wait for all live ranks, and name a rank that does not respond', async () => {
    const { rendezvous, jobs } = await startJob(4)
    rendezvous.server.gone(1, 'lost')
    const [error] = await failuresOf([jobs[0]!.survivors({ timeout: 300 })])
    expect((error as RendezvousTimeoutError).missing).toEqual([2, 3])
    const next = await Promise.all([0, 2, 3].map((rank) => jobs[rank]!.survivors()))
    expect(next).toHaveLength(3)
  })

  test('consisting of one rank form a job of one', async () => {
    const { rendezvous, jobs } = await startJob(2)
    rendezvous.server.gone(0, 'lost')
    const alone = await jobs[1]!.survivors()
    expect([alone.rank, alone.worldSize]).toEqual([0, 1])
    expect(await alone.share('id', () => bytes(3))).toEqual(bytes(3))
    expect(await alone.gather('sizes', bytes(4))).toEqual([bytes(4)])
    await alone.barrier('end')
  })

  test('notice the next loss even directly after the agreement', async () => {
    const { rendezvous, jobs } = await startJob(3)
    rendezvous.server.gone(0, 'lost')
    const waiting = [jobs[1]!.survivors(), jobs[2]!.survivors()]
    // Both answers and the loss of rank 2 are then in the socket together.
    await sleep(300)
    rendezvous.server.gone(2, 'lost')
    const next = await waiting[0]!
    if (!next.lost.aborted) await new Promise((resolve) => next.lost.addEventListener('abort', resolve, { once: true }))
    expect(next.lostRanks).toEqual([1])
  })
})
