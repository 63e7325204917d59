import { type Job, RendezvousError, RendezvousTimeoutError } from '@shoal/launch'
import { AbortedError, DisposedError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { failuresOf, serve, sleep, startJob } from './support/jobs.js'

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values)

test('all ranks join a job and know their places', async () => {
  const { jobs } = await startJob(4)
  expect(jobs.map(({ rank, worldSize }) => [rank, worldSize])).toEqual([0, 1, 2, 3].map((rank) => [rank, 4]))
  // No variable contains these numbers. The rendezvous derives them from the machines of the ranks.
  expect(jobs.map(({ localRank, localWorldSize, nodeRank }) => [localRank, localWorldSize, nodeRank])).toEqual(
    [0, 1, 2, 3].map((rank) => [rank, 4, 0]),
  )
  expect(jobs.map(({ launcher, deviceOrdinal }) => [launcher, deviceOrdinal])).toEqual(
    [0, 1, 2, 3].map((rank) => ['shoal', rank]),
  )
  expect(jobs.every(({ lost, lostRanks }) => !lost.aborted && lostRanks.length === 0)).toBe(true)
})

test('late ranks are waited for', async () => {
  const rendezvous = await serve(3)
  const early = rendezvous.join(2)
  await sleep(100)
  const rest = [rendezvous.join(0), rendezvous.join(1)]
  expect((await Promise.all([early, ...rest])).map((job) => job.rank)).toEqual([2, 0, 1])
})

describe('Job.share', () => {
  test('copies the value of the root, so that later changes have no effect', async () => {
    const { jobs } = await startJob(2)
    const made = bytes(1, 2)
    const shared = await Promise.all(jobs.map((job) => job.share('copy', () => made)))
    made.fill(9)
    expect(shared).toEqual([bytes(1, 2), bytes(1, 2)])
  })

  test('calls the function of the root once, and returns the value to all ranks', async () => {
    const { jobs } = await startJob(4)
    const makers: number[] = []
    const make = (job: Job) => () => {
      makers.push(job.rank)
      return bytes(7, job.rank)
    }
    const shared = await Promise.all(jobs.map((job) => job.share('id', make(job), { root: 2 })))
    expect(makers).toEqual([2])
    expect(shared).toEqual(Array(4).fill(bytes(7, 2)))
    expect(shared[0]).toBeInstanceOf(Uint8Array)
  })

  test('does not block the root, which may be several shares ahead', async () => {
    const { jobs } = await startJob(3)
    for (let turn = 0; turn < 5; turn += 1) await jobs[0]!.share('id', () => bytes(turn))
    for (let turn = 0; turn < 5; turn += 1) expect(await jobs[1]!.share('id', () => bytes())).toEqual(bytes(turn))
    for (let turn = 0; turn < 5; turn += 1) expect(await jobs[2]!.share('id', () => bytes())).toEqual(bytes(turn))
  })

  test('may have another root each time', async () => {
    const { jobs } = await startJob(3)
    for (let root = 0; root < 3; root += 1) {
      const shared = await Promise.all(jobs.map((job) => job.share('id', () => bytes(job.rank), { root })))
      expect(shared).toEqual(Array(3).fill(bytes(root)))
    }
  })

  test('accepts an empty value and the largest, and refuses a larger one', async () => {
    const { jobs } = await startJob(2)
    const large = new Uint8Array(2 ** 20).map((_, index) => index * 31)
    const share = (name: string, value: Uint8Array) =>
      Promise.all(jobs.map((job) => job.share(name, async () => value)))
    expect(await share('none', bytes())).toEqual([bytes(), bytes()])
    const [, received] = await share('large', large)
    expect(Buffer.compare(received!, large)).toBe(0)
    const [own, other] = await failuresOf(jobs.map((job) => job.share('over', () => new Uint8Array(2 ** 20 + 1))))
    expect(own).toBeInstanceOf(RangeError)
    expect(String(other)).toContain('rank 0 could not make it')
  })

  test('rejects on the other ranks with the error of the root', async () => {
    const { jobs } = await startJob(3)
    const fault = new Error('no network interface')
    const make = (): Uint8Array => {
      throw fault
    }
    const [own, ...others] = await failuresOf(jobs.map((job) => job.share('id', make)))
    expect(own).toBe(fault)
    for (const error of others) {
      expect(error).toBeInstanceOf(RendezvousError)
      expect(String(error)).toContain("share 'id': rank 0 could not make it: no network interface")
    }
    expect(await Promise.all(jobs.map((job) => job.share('id', () => bytes(1))))).toEqual(Array(3).fill(bytes(1)))
  })

  test('rejects on the other ranks even if the thrown value has no text', async () => {
    const { jobs } = await startJob(2)
    const thrown: unknown = Object.create(null)
    const make = (): Uint8Array => {
      throw thrown
    }
    const [own, other] = await failuresOf(jobs.map((job) => job.share('id', make)))
    expect(own).toBe(thrown)
    expect(String(other)).toContain('rank 0 could not make it: a plain object')
  })

  test('rejects if the ranks disagree on the root', async () => {
    const { jobs } = await startJob(3)
    const waiting = jobs[2]!.share('id', () => bytes(), { root: 0 })
    await sleep(100)
    await expect(jobs[1]!.share('id', () => bytes(1), { root: 1 })).rejects.toThrow(
      "share 'id': this rank says that the root is rank 1, others say rank 0",
    )
    await jobs[0]!.share('id', () => bytes(5))
    expect(await waiting).toEqual(bytes(5))
  })

  test('sends the value unchanged, even if its memory changes afterwards', async () => {
    const { jobs } = await startJob(2)
    const memory = bytes(1, 2, 3)
    const sending = jobs[0]!.share('id', () => memory)
    await Promise.resolve()
    await sending.finally(() => memory.fill(0))
    expect(await jobs[1]!.share('id', () => bytes())).toEqual(bytes(1, 2, 3))
  })
})

test('Job.gather returns the bytes of all ranks to all, in order and of any length', async () => {
  const { jobs } = await startJob(4)
  const own = (rank: number) => new Uint8Array(rank * 1000).fill(rank)
  for (let turn = 0; turn < 3; turn += 1) {
    const gathered = await Promise.all(jobs.map((job) => job.gather('sizes', own(job.rank))))
    for (const values of gathered) expect(values).toEqual([0, 1, 2, 3].map(own))
  }
})

test('Job.barrier completes on no rank before the last has come', async () => {
  const { jobs } = await startJob(4)
  let come = 0
  const seen = await Promise.all(
    jobs.map(async (job) => {
      await sleep(job.rank * 20)
      come += 1
      await job.barrier('start')
      return come
    }),
  )
  expect(seen).toEqual([4, 4, 4, 4])
})

test('different names, and different operations with the same name, are separate', async () => {
  const { jobs } = await startJob(2)
  const [first, second] = jobs as [Job, Job]
  const order = [
    second.barrier('a'),
    second.barrier('b'),
    second.gather('a', bytes(2)),
    second.share('a', () => bytes()),
  ]
  const results = [
    first.share('a', () => bytes(9)),
    first.gather('a', bytes(1)),
    first.barrier('b'),
    first.barrier('a'),
  ]
  await Promise.all(results)
  expect((await Promise.all(order)).slice(2)).toEqual([[bytes(1), bytes(2)], bytes(9)])
})

test('values can be set, replaced and waited for', async () => {
  const { jobs } = await startJob(3)
  const waiting = [jobs[1]!.get('key'), jobs[2]!.get('key')]
  await sleep(100)
  await jobs[0]!.set('key', bytes(1))
  expect(await Promise.all(waiting)).toEqual([bytes(1), bytes(1)])
  await jobs[2]!.set('key', bytes(2, 3))
  expect(await jobs[0]!.get('key')).toEqual(bytes(2, 3))
})

describe('Job refuses', () => {
  test.each(['a job with others', 'a job of one'])('%s', async (which) => {
    const { bootstrap } = await import('@shoal/launch')
    const job = which === 'a job of one' ? await bootstrap({ environment: {} }) : (await startJob(2)).jobs[0]!
    const wrong = [
      [() => job.share('', () => bytes()), RangeError],
      [() => job.share('x'.repeat(257), () => bytes()), RangeError],
      [() => job.share(1 as never, () => bytes()), TypeError],
      [() => job.share('id', bytes() as never), TypeError],
      [() => job.share('id', () => 'text' as never), TypeError],
      [() => job.share('id', () => bytes(), { root: job.worldSize }), RangeError],
      [() => job.share('id', () => bytes(), { root: -1 }), RangeError],
      [() => job.share('id', () => bytes(), { root: 0.5 }), TypeError],
      [() => job.gather('x', [] as never), TypeError],
      [() => job.gather('x', new Uint8Array(2 ** 20 + 1)), RangeError],
      [() => job.set('', bytes()), RangeError],
      [() => job.set('key', 'text' as never), TypeError],
      [() => job.get('key', { timeout: -1 }), RangeError],
      [() => job.get('key', { timeout: Number.NaN }), TypeError],
      [() => job.barrier('x', { timeout: '5' as never }), TypeError],
      [() => job.barrier('x', { timeout: Number.POSITIVE_INFINITY }), RangeError],
      [() => job.get('key', { timeout: 2 ** 31 }), RangeError],
      [() => job.get('key', { limit: 5 } as never), TypeError],
      [() => job.share('id', () => bytes(), { from: 0 } as never), TypeError],
    ] as const
    for (const [call, kind] of wrong) {
      await expect(call()).rejects.toBeInstanceOf(kind)
      await expect(call()).rejects.toThrow(/^Job\.\w+: .* must /)
    }
  })

  test('two concurrent calls with the same name', async () => {
    const { jobs } = await startJob(2)
    const first = jobs[0]!.barrier('start')
    await expect(jobs[0]!.barrier('start')).rejects.toThrow("barrier 'start': this rank is already waiting there")
    await jobs[1]!.barrier('start')
    await first
  })
})

test('a job of one rank works without a rendezvous', async () => {
  const { bootstrap } = await import('@shoal/launch')
  const job = await bootstrap({ environment: {} })
  expect(job).toMatchObject({ rank: 0, worldSize: 1, localRank: 0, localWorldSize: 1, nodeRank: 0, launcher: 'single' })
  expect(await job.share('id', () => bytes(1))).toEqual(bytes(1))
  expect(await job.gather('id', bytes(2))).toEqual([bytes(2)])
  await job.barrier('x')
  const waiting = job.get('key')
  await job.set('key', bytes(3))
  expect(await waiting).toEqual(bytes(3))
  const [late, aborted] = await failuresOf([
    job.get('none', { timeout: 10 }),
    job.get('none', { signal: AbortSignal.timeout(10) }),
  ])
  expect(late).toBeInstanceOf(RendezvousTimeoutError)
  expect(aborted).toBeInstanceOf(AbortedError)
  const next = await job.survivors()
  expect(next.worldSize).toBe(1)
  await expect(job.barrier('x')).rejects.toThrow(DisposedError)
  const pending = failuresOf([next.get('never')])
  await next[Symbol.asyncDispose]()
  expect((await pending)[0]).toBeInstanceOf(DisposedError)
})

describe.each([1, 2])('a job of %d', (worldSize) => {
  const calls: { readonly [operation: string]: (job: Job, options?: { signal: AbortSignal }) => Promise<unknown> } = {
    "share 'id'": (job, options) => job.share('id', () => bytes(1), options),
    "gather 'id'": (job, options) => job.gather('id', bytes(1), options),
    "barrier 'end'": (job, options) => job.barrier('end', options),
    "get 'key'": (job, options) => job.get('key', options),
    "set 'key'": (job) => job.set('key', bytes(1)),
    survivors: (job, options) => job.survivors(options),
  }
  const start = async (): Promise<Job> => {
    const { bootstrap } = await import('@shoal/launch')
    return worldSize === 1 ? bootstrap({ environment: {} }) : ((await startJob(2)).jobs[0] as Job)
  }

  test('refuses each call after it was left, and each call with a fired signal', async () => {
    const job = await start()
    const signal = AbortSignal.abort('enough')
    for (const [operation, call] of Object.entries(calls).filter(([name]) => name !== "set 'key'")) {
      const error = await call(job, { signal }).catch((reason: unknown) => reason)
      expect(error, operation).toBeInstanceOf(AbortedError)
      expect(error).toMatchObject({ operation, cause: 'enough' })
    }
    await job.dispose()
    await job.dispose()
    for (const [operation, call] of Object.entries(calls)) {
      await expect(call(job), operation).rejects.toThrow(DisposedError)
    }
  })

  test('stores and returns copies of values', async () => {
    const job = await start()
    const value = bytes(5, 6)
    await job.set('key', value)
    value.fill(0)
    const first = await job.get('key')
    expect(first).toEqual(bytes(5, 6))
    first.fill(1)
    expect(await job.get('key')).toEqual(bytes(5, 6))
    await job.dispose()
  })
})

describe('wrong options', () => {
  const anything = (value: unknown): never => value as never
  const controller = anything(new AbortController())

  test.each([1, 2])('of a job of %d are refused', async (worldSize) => {
    const { bootstrap } = await import('@shoal/launch')
    const job = worldSize === 1 ? await bootstrap({ environment: {} }) : (await startJob(2)).jobs[0]!
    const make = (): Uint8Array => bytes(1)
    for (const call of [
      () => job.share('id', make, anything(null)),
      () => job.gather('id', bytes(1), anything(null)),
      () => job.barrier('x', anything(null)),
      () => job.get('key', anything('soon')),
      () => job.survivors(anything(null)),
    ]) {
      await expect(call()).rejects.toThrow(/^Job\.\w+: options must be a plain object such as \{ .* \}, not /)
    }
    for (const call of [
      () => job.share('id', make, { signal: controller }),
      () => job.barrier('x', { signal: anything({}) }),
      () => job.get('key', { signal: anything(null) }),
    ]) {
      await expect(call()).rejects.toThrow(/^Job\.\w+: signal must be an AbortSignal, not /)
    }
    await expect(job.share('id', make, { root: worldSize })).rejects.toThrow(RangeError)
  })

  test('of bootstrap are refused', async () => {
    const { bootstrap } = await import('@shoal/launch')
    await expect(bootstrap(anything(null))).rejects.toThrow('bootstrap: options must be a plain object')
    await expect(bootstrap(anything({ rank: 0 }))).rejects.toThrow(
      "only the keys signal, timeout, environment, users, not 'rank'",
    )
    await expect(bootstrap({ signal: controller })).rejects.toThrow('bootstrap: signal must be an AbortSignal')
    await expect(bootstrap({ environment: anything('RANK=0') })).rejects.toThrow('bootstrap: environment must be')
    const environment = { RANK: '0', WORLD_SIZE: '999999999', MASTER_ADDR: '127.0.0.1' }
    await expect(bootstrap({ environment })).rejects.toThrow(/there are 999999999 ranks; a job has 1048576 at most/)
  })
})
