import { describe, expect, test } from 'vitest'
import { resultsOf, runJob } from './fixtures/job.js'

describe('a session by unique id', () => {
  test.for([1, 2, 4])('starts %i PEs, which put to and get from each other', async (worldSize) => {
    const results = await resultsOf('session.ring', worldSize)
    for (const [rank, result] of results.entries()) {
      const [before, after] = [(rank + worldSize - 1) % worldSize, (rank + 1) % worldSize]
      expect(result).toEqual({
        place: [rank, worldSize, 'serialized', rank, worldSize],
        status: 'initialized',
        mine: [before, before, before, before],
        theirs: [(after + worldSize - 1) % worldSize, rank, rank, rank].map(() => rank),
      })
    }
  })

  test('keeps the order of calls that are not awaited', async () => {
    for (const result of await resultsOf('session.order', 2)) {
      expect(result).toEqual({ result: [1, 2, 3], waitingFor: 'Session.barrierAll' })
    }
  })

  test('leaves the event loop alone while a PE waits for another', async () => {
    const [waiting] = await resultsOf<{ waited: number; ticks: number; longest: number }>('session.eventLoop', 2, {
      options: { late: 1500 },
    })
    expect(waiting?.waited).toBeGreaterThan(800)
    expect(waiting?.ticks).toBeGreaterThan(80)
    expect(waiting?.longest).toBeLessThan(100)
  })

  test('is refused beside another, and after one of another id', async () => {
    for (const result of await resultsOf('session.second', 2)) {
      expect(result).toMatchObject({
        live: { error: 'SHOAL_NVSHMEM_SESSION_EXISTS' },
        ended: { error: 'SHOAL_NVSHMEM_SESSION_EXISTS' },
        use: [{ error: 'SHOAL_DISPOSED' }, { error: 'SHOAL_DISPOSED' }],
        disposed: true,
      })
    }
  })

  test('follows none, not even one of the same id', async () => {
    for (const result of await resultsOf('session.again', 2)) {
      expect(result).toMatchObject({ error: 'SHOAL_NVSHMEM_SESSION_EXISTS' })
    }
  })

  test('whose signal has fired makes no call that waits, also not a blocking one, and can be abandoned', async () => {
    const [result] = await resultsOf('session.signal', 1)
    const aborted = { error: 'SHOAL_ABORTED' }
    expect(result).toMatchObject({
      refused: Array.from({ length: 16 }, () => aborted),
      looked: ['nothing', 'nothing'],
      disposed: [false, false],
      after: [true, 'nothing', 'nothing'],
    })
  })

  test('ends all processes by globalExit, without their handlers', async () => {
    const said: string[] = []
    const ends = await runJob('session.globalExit', 2, { onSaid: (_, text) => said.push(text) })
    expect(ends.map(({ code }) => code)).toEqual([3, 3])
    expect(said).toEqual([])
  })
})
