import { type ChildProcess, fork } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'

const script = fileURLToPath(new URL('fixtures/survivor.mjs', import.meta.url))
const worldSize = 3
/** Milliseconds after a rank was killed in which all others must report it. */
const deadline = 8000
const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

interface Report {
  readonly code?: string
  readonly operation?: string
  readonly reason?: string
  readonly lostRanks?: number[]
  readonly message?: string
  readonly cause?: string
  readonly error?: string
}

interface End {
  report?: Report
  /** Milliseconds from the kill to the report. */
  delay?: number
  sum?: number
  /** Longest time in milliseconds during which the event loop was blocked. */
  stalls?: number
  code?: number | null
}

interface Message {
  readonly stage?: string
  readonly key?: string
  readonly id?: string
  readonly report?: Report
  readonly sum?: number
  readonly stalls?: number
}

interface Plan {
  readonly stage: string
  readonly killedRank: number
  /** The source of the report: a launcher's signal, NCCL alone, or a time limit if the rank only stops. */
  readonly notice: 'signal' | 'nccl' | 'timeout'
  readonly blocking: boolean
}

function sharedMemory(): string[] {
  return readdirSync('/dev/shm').filter((name) => name.startsWith('shoal-nccl-'))
}

/** Sends to a rank that may have been killed or may have ended without notice. */
function tell(child: ChildProcess, message: object): void {
  if (child.connected) child.send(message, () => undefined)
}

/** Runs the ranks, kills one, and returns how the others ended. They must leave nothing behind. */
async function run(plan: Plan): Promise<Map<number, End>> {
  const before = new Set(sharedMemory())
  const ends = new Map<number, End>()
  let killedAt = 0
  const others = (rank: number): ChildProcess[] => children.filter((_, other) => other !== rank)
  const survivors: Promise<void>[] = []
  let killedRankEnded = Promise.resolve()
  for (let rank = 0; rank < worldSize; rank += 1) {
    const child = fork(script, [JSON.stringify({ ...plan, rank, worldSize })], {
      env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: String(worldSize) },
      execArgv: [],
    })
    children.push(child)
    const end: End = {}
    if (rank !== plan.killedRank) ends.set(rank, end)
    child.on('message', (message: Message) => {
      if (message.stage !== undefined) {
        // First the other ranks reach their wait for this rank.
        setTimeout(() => {
          killedAt = performance.now()
          child.kill(plan.notice === 'timeout' ? 'SIGSTOP' : 'SIGKILL')
        }, 300)
      } else if (message.key !== undefined) {
        for (const other of others(rank)) tell(other, { [message.key]: message.id })
      } else if (message.report !== undefined) {
        end.report = message.report
        end.delay = performance.now() - killedAt
      } else Object.assign(end, message)
    })
    const ended = new Promise<void>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => {
        end.code = code
        if (rank === plan.killedRank) {
          for (const other of others(rank)) {
            if (plan.notice === 'signal') tell(other, { lost: [rank] })
            tell(other, { goOn: true })
          }
        }
        resolve()
      })
    })
    if (rank === plan.killedRank) killedRankEnded = ended
    else survivors.push(ended)
  }
  await Promise.all(survivors)
  children[plan.killedRank]?.kill('SIGKILL')
  await killedRankEnded
  // Other tests that run at the same time have segments for a short while.
  const left = sharedMemory().filter((name) => !before.has(name))
  await expect.poll(() => sharedMemory().filter((name) => left.includes(name)), { timeout: 5000 }).toEqual([])
  return ends
}

function check(ends: Map<number, End>): void {
  expect(ends.size).toBe(worldSize - 1)
  for (const [rank, end] of ends) {
    expect(end, `rank ${rank}: ${JSON.stringify(end)}`).toMatchObject({ code: 0, sum: 20 })
    expect(end.report?.error).toBeUndefined()
    expect(end.delay).toBeLessThan(deadline)
    // Two cores run three or more ranks here. A blocked event loop would stand still from the kill to its report.
    expect(end.stalls).toBeLessThan(1000)
  }
}

const stages = ['in a collective', 'in finalize', 'in destroy', 'in split']

describe.each([true, false])('communicators with blocking %s', (blocking) => {
  test.each(['before init', 'in init'])(
    'a rank killed %s: a signal rejects the init of the others, and they continue without it',
    async (stage) => {
      const ends = await run({ stage, killedRank: 1, notice: 'signal', blocking })
      check(ends)
      for (const [rank, { report }] of ends) {
        // If NCCL is faster than the signal, its own error.
        expect(['SHOAL_ABORTED', 'ncclRemoteError', 'ncclSystemError']).toContain(report?.code)
        if (report?.code === 'SHOAL_ABORTED') expect(report.operation).toContain(`rank ${rank} of ${worldSize}`)
      }
    },
    30_000,
  )

  test.each(stages)(
    'a rank killed while others are %s: a signal rejects their waits, and they continue without it',
    async (stage) => {
      const ends = await run({ stage, killedRank: 2, notice: 'signal', blocking })
      check(ends)
      for (const [, { report }] of ends) {
        expect(report).toMatchObject({ code: 'SHOAL_COMMUNICATOR_ABORTED' })
        if (report?.reason === 'signal') expect(report.lostRanks).toEqual([2])
        expect(report?.message).toContain('(device')
      }
    },
    30_000,
  )

  test.each(stages)(
    'a rank killed while others are %s: NCCL itself reports it',
    async (stage) => {
      const ends = await run({ stage, killedRank: 0, notice: 'nccl', blocking })
      check(ends)
      for (const [, { report }] of ends) {
        expect(report).toMatchObject({
          code: 'SHOAL_COMMUNICATOR_ABORTED',
          reason: 'async-error',
          cause: 'ncclRemoteError',
        })
      }
    },
    30_000,
  )

  test.each(stages)(
    'a rank stopped while others are %s: their timeout rejects, and they continue without it',
    async (stage) => {
      const ends = await run({ stage, killedRank: 1, notice: 'timeout', blocking })
      check(ends)
      for (const [, { report }] of ends) {
        // The rank whose limit passes first aborts, and the other one notices it.
        expect(report).toMatchObject({ code: 'SHOAL_COMMUNICATOR_ABORTED' })
        expect(['timeout', 'async-error']).toContain(report?.reason)
      }
    },
    30_000,
  )

  test('a rank killed in init: NCCL itself reports it', async () => {
    const ends = await run({ stage: 'in init', killedRank: 1, notice: 'nccl', blocking })
    check(ends)
    for (const [, { report }] of ends) expect(report).toMatchObject({ code: 'ncclRemoteError' })
  }, 30_000)
})
