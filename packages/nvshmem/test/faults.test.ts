import type { ChildProcess } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type End, runJob } from './fixtures/job.js'

const sharedMemory = (): string[] => readdirSync('/dev/shm').filter((name) => name.includes('nvshmem'))
let before: string[] = []

beforeEach(() => {
  before = sharedMemory()
})

afterEach(() => {
  expect(sharedMemory().filter((name) => !before.includes(name))).toEqual([])
})

interface Report {
  readonly error: { readonly error: string; readonly message: string } | 'nothing'
  readonly took: number
}

const timedOut = { error: 'SHOAL_TIMEOUT' }
// NVSHMEM may notice the loss, as the software device does, or continue to wait.
const byItselfOrTimeout = { error: { error: expect.stringMatching(/^(NVSHMEMX_ERROR_INTERNAL|SHOAL_TIMEOUT)$/) } }
const stuck = { error: 'SHOAL_NVSHMEM_STUCK' }

/** Returns the report of PE 0, which must end by itself and in time. */
async function survivorOf(program: string, worldSize = 2): Promise<Report> {
  // A stopped PE ends after the other PE has reported.
  const onSaid = (_: number, __: string, job: readonly ChildProcess[]): void => {
    job[1]?.kill('SIGKILL')
  }
  const [survivor, other] = (await runJob(`faults.${program}`, worldSize, { onSaid })) as [End, End]
  expect(other.signal).toBe('SIGKILL')
  expect({ ...survivor, result: undefined, output: undefined }).toMatchObject({ code: 0, signal: null })
  expect(survivor.failed).toBeUndefined()
  const report = survivor.result as Report
  expect(report.took).toBeLessThan(5000)
  return report
}

describe('a killed PE', () => {
  test('before Session.init: the others report it in time, and no second init is possible', async () => {
    expect(await survivorOf('beforeInit')).toMatchObject({
      error: timedOut,
      next: { error: 'SHOAL_NVSHMEM_SESSION_EXISTS' },
    })
  })

  test('during Session.init: the others report it in time', async () => {
    expect(await survivorOf('inInit', 3)).toMatchObject(byItselfOrTimeout)
  })

  test.for(['inBarrier', 'inCollective'])(
    '%s: the other PE reports it in time, by detection or by timeout',
    async (when) => {
      const report = await survivorOf(when)
      expect(report).toMatchObject(byItselfOrTimeout)
      expect(report).toMatchObject({ next: { error: expect.any(String) }, after: { error: 'SHOAL_DISPOSED' } })
    },
  )

  test('during finalize: the other PE reports it or ends in time', async () => {
    expect(await survivorOf('inFinalize')).toMatchObject({ disposed: true })
  })
})

describe('a hanging PE', () => {
  test('in a barrier: the other PE reports it in time, refuses calls that would hang, and exits', async () => {
    const report = await survivorOf('hangsInBarrier')
    expect(report).toMatchObject({
      error: { ...timedOut, message: expect.stringContaining('Session.barrierAll') },
      stuckIn: 'Session.barrierAll',
      next: stuck,
      finalize: stuck,
      after: { error: 'SHOAL_DISPOSED' },
    })
  })

  test('in a collective: the signal of the session ends all waits', async () => {
    expect(await survivorOf('bySignal')).toMatchObject({
      error: { error: 'SHOAL_ABORTED' },
      behind: { error: 'SHOAL_ABORTED' },
      stuckIn: 'Team.reduce',
      next: stuck,
    })
  })

  test('during finalize: the other PE reports it in time, and exits', async () => {
    expect(await survivorOf('hangsInFinalize')).toMatchObject({ error: timedOut, disposed: true })
  })
})

describe('a late PE', () => {
  const wake = (_: number, text: string, job: readonly ChildProcess[]): void => {
    job[1]?.send({ said: text })
  }

  test('lets the timed-out call return, and the session becomes usable again', async () => {
    const [gaveUp, late] = await runJob('faults.late', 2, { onSaid: wake })
    expect(late).toMatchObject({ code: 0, result: 'came late' })
    expect(gaveUp).toMatchObject({
      code: 0,
      result: { gaveUp: timedOut, refused: stuck, stuckIn: 'Session.barrierAll' },
    })
  })

  test('does not dispose a buffer yet: the buffer is unusable on the first PE, which waits for the late one', async () => {
    const [first, second] = await runJob('faults.freedByOne', 2, { onSaid: wake })
    expect(second).toMatchObject({ code: 0, failed: undefined })
    expect(first).toMatchObject({
      code: 0,
      result: [timedOut, 'SymmetricBuffer.dispose', { error: 'SHOAL_DISPOSED' }],
    })
  })
})
