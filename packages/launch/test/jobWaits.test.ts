import { type Job, RendezvousLostError, RendezvousTimeoutError } from '@shoal/launch'
import { AbortedError, DisposedError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { openTimers } from '../../ffi/test/support/openTimers.js'
import { failuresOf, serve, sleep, startJob } from './support/jobs.js'

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values)

describe('waits in a job end', () => {
  test('by timeout, and name the missing ranks', async () => {
    const { jobs } = await startJob(5)
    const some = [jobs[0]!, jobs[3]!]
    const failures = await failuresOf(some.map((job) => job.barrier('start', { timeout: 60 })))
    const error = failures[0] as RendezvousTimeoutError
    expect(error).toBeInstanceOf(RendezvousTimeoutError)
    expect(error).toMatchObject({ code: 'SHOAL_RENDEZVOUS_TIMEOUT', operation: "barrier 'start'", timeout: 60 })
    expect(error.missing).toEqual([1, 2, 4])
    expect(error.message).toBe("barrier 'start' did not end within 60 ms: ranks 1, 2 and 4 did not come")
    // A rank that cancelled its wait does not count: the next attempt waits for all ranks again.
    await Promise.all(jobs.map((job) => job.barrier('start')))
  })

  test('without counting a rank that has stopped waiting', async () => {
    const { jobs } = await startJob(3)
    const waiting = jobs[1]!.barrier('start')
    await expect(jobs[0]!.barrier('start', { timeout: 100 })).rejects.toBeInstanceOf(RendezvousTimeoutError)
    let ended = 0
    const all = [waiting, jobs[2]!.barrier('start')]
    for (const one of all) void one.then(() => (ended += 1))
    // Two of three ranks have called it. The third rank's data was dropped with its cancelled call.
    await expect(jobs[2]!.gather('other', bytes(), { timeout: 200 })).rejects.toBeInstanceOf(RendezvousTimeoutError)
    expect(ended).toBe(0)
    await jobs[0]!.barrier('start')
    await Promise.all(all)
  })

  test('by the longest possible timeout, and not at once', async () => {
    const { jobs } = await startJob(2)
    const timeout = 2 ** 31 - 1
    const waiting = [jobs[0]!.barrier('start', { timeout }), jobs[0]!.get('key', { timeout })]
    const { bootstrap } = await import('@shoal/launch')
    const alone = await bootstrap({ environment: {} })
    const unanswered = alone.get('key', { timeout })
    await sleep(100)
    await Promise.all([
      jobs[1]!.barrier('start', { timeout }),
      jobs[1]!.set('key', bytes(5)),
      alone.set('key', bytes(6)),
    ])
    expect((await Promise.all([...waiting, unanswered])).slice(1)).toEqual([bytes(5), bytes(6)])
    for (const beyond of [2 ** 31, 2 ** 32, 1e300]) {
      for (const call of [
        () => jobs[0]!.barrier('start', { timeout: beyond }),
        () => jobs[0]!.gather('start', bytes(), { timeout: beyond }),
        () => jobs[0]!.share('id', () => bytes(), { timeout: beyond }),
        () => jobs[0]!.survivors({ timeout: beyond }),
        () => bootstrap({ environment: {}, timeout: beyond }),
      ]) {
        await expect(call()).rejects.toThrow(/: timeout must be a number of milliseconds from 0 to 2147483647, not /)
      }
    }
  })

  test.each([
    ['barrier', (job: Job, timeout: number): Promise<unknown> => job.barrier('start', { timeout })],
    ['gather', (job: Job, timeout: number): Promise<unknown> => job.gather('start', bytes(), { timeout })],
    ['survivors', (job: Job, timeout: number): Promise<unknown> => job.survivors({ timeout })],
  ] as const)('without blaming other waiting ranks: %s', async (_, wait) => {
    const { jobs } = await startJob(4)
    // One after the other: the remaining ranks still wait for the one that never called it.
    const failures = await failuresOf([wait(jobs[0]!, 200), wait(jobs[1]!, 400), wait(jobs[3]!, 600)])
    for (const error of failures) expect((error as RendezvousTimeoutError).missing).toEqual([2])
    // If all ranks have called it and one cancelled, the error names that one.
    const [first, late] = await failuresOf([
      wait(jobs[0]!, 200),
      wait(jobs[1]!, 900),
      sleep(500).then(() => wait(jobs[2]!, 1000)),
    ])
    expect((first as RendezvousTimeoutError).missing).toEqual([2, 3])
    expect((late as RendezvousTimeoutError).missing).toEqual([3])
  })

  test('with the root as the missing rank of a share, and no missing rank for a key', async () => {
    const { jobs } = await startJob(2)
    const [share, get] = await failuresOf([
      jobs[1]!.share('id', () => bytes(), { timeout: 30 }),
      jobs[1]!.get('key', { timeout: 30 }),
    ])
    expect((share as RendezvousTimeoutError).missing).toEqual([0])
    expect((get as RendezvousTimeoutError).missing).toEqual([])
  })

  test('by their signal, at once or before they begin', async () => {
    const { jobs } = await startJob(2)
    const controller = new AbortController()
    const waiting = jobs[0]!.barrier('start', { signal: controller.signal })
    await sleep(100)
    const reason = new Error('enough')
    controller.abort(reason)
    const [during, before] = await failuresOf([waiting, jobs[0]!.get('key', { signal: controller.signal })])
    expect(during).toBeInstanceOf(AbortedError)
    expect(during).toMatchObject({ cause: reason, operation: "barrier 'start'" })
    expect(before).toBeInstanceOf(AbortedError)
    await Promise.all(jobs.map((job) => job.barrier('start')))
  })

  test('when their job is disposed', async () => {
    const { jobs } = await startJob(2)
    const waiting = failuresOf([jobs[0]!.barrier('start'), jobs[0]!.get('key')])
    await jobs[0]!.dispose()
    await jobs[0]!.dispose()
    for (const error of await waiting) expect(error).toBeInstanceOf(DisposedError)
    await expect(jobs[0]!.set('key', bytes())).rejects.toThrow(DisposedError)
  })

  test('when the rendezvous itself ends', async () => {
    const { rendezvous, jobs } = await startJob(2)
    const waiting = failuresOf([jobs[0]!.barrier('start'), jobs[1]!.get('key'), jobs[0]!.survivors()])
    await sleep(100)
    rendezvous.server.dispose()
    for (const error of await waiting) expect(error).toBeInstanceOf(RendezvousLostError)
    expect(jobs[0]!.lost.aborted).toBe(true)
    expect(jobs[0]!.lost.reason).toBeInstanceOf(RendezvousLostError)
    await expect(jobs[1]!.set('key', bytes())).rejects.toThrow(/the rendezvous at tcp:.* is gone/)
  })

  test('in bootstrap too: all present ranks get the missing ones', async () => {
    const rendezvous = await serve(4)
    const failures = await failuresOf([rendezvous.join(1, { timeout: 1_000 }), rendezvous.join(3, { timeout: 20_000 })])
    for (const error of failures) expect((error as RendezvousTimeoutError).missing).toEqual([0, 2])
    expect(String(failures[0])).toContain('bootstrap of rank 1 did not end within')
    expect(String(failures[0])).toContain('ranks 0 and 2 did not come')
  })

  test('in bootstrap if no process serves the rendezvous', async () => {
    const rendezvous = await serve(2)
    rendezvous.server.dispose()
    const [late, aborted] = await failuresOf([
      rendezvous.join(0, { timeout: 3_000 }),
      rendezvous.join(1, { signal: AbortSignal.timeout(50) }),
    ])
    expect(late).toBeInstanceOf(RendezvousTimeoutError)
    expect(String(late)).toMatch(/The rendezvous at tcp:\/\/127\.0\.0\.1:\d+ was not reached: .*ECONNREFUSED/)
    expect(aborted).toBeInstanceOf(AbortedError)
  })
})

test.each([1, 2])('a job of %d leaves no timer', async (worldSize) => {
  const { bootstrap } = await import('@shoal/launch')
  const timers = openTimers()
  const before = timers()
  const limit = { timeout: 300_000, signal: new AbortController().signal }
  const job = worldSize === 1 ? await bootstrap({ environment: {}, ...limit }) : undefined
  const { rendezvous, jobs } = job === undefined ? await startJob(2) : { rendezvous: undefined, jobs: [job] }
  await Promise.all(jobs.map((one) => one.gather('id', bytes(1), limit)))
  await Promise.all(jobs.map((one) => one.share('id', () => bytes(1), limit)))
  const [first] = jobs as [Job]
  const value = first.get('key', limit)
  await first.set('key', bytes(1))
  await value
  const never = failuresOf([first.get('never', limit)])
  await Promise.all(jobs.map((one) => one.dispose()))
  await never
  rendezvous?.server.dispose()
  // Waits until the other ends of the connections have noticed.
  for (let turn = 0; turn < 10_000 && timers() !== before; turn += 1)
    await new Promise((resolve) => setImmediate(resolve))
  expect(timers()).toBe(before)
})

test('in a job of one, several waits for a value have separate timeouts', async () => {
  const { bootstrap } = await import('@shoal/launch')
  const job = await bootstrap({ environment: {} })
  const controller = new AbortController()
  const waits = [job.get('key'), job.get('key', { signal: controller.signal }), job.get('other')]
  const given = failuresOf(waits)
  controller.abort('no more')
  await job.set('key', bytes(7))
  expect(await waits[0]).toEqual(bytes(7))
  await job.dispose()
  const [first, second, third] = await given
  expect(first).toBe('it succeeded')
  expect(second).toMatchObject({ operation: "get 'key'", cause: 'no more' })
  expect(third).toBeInstanceOf(DisposedError)
})
