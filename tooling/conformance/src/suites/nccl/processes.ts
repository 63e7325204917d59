import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import type { RankMessage, RankTask } from './rankProcess.js'

const script = fileURLToPath(new URL('rankProcess.js', import.meta.url))

interface RankEnd {
  readonly result: Extract<RankMessage, { kind: 'result' }> | undefined
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Starts one process per rank. All processes end with the case. */
function startRanks(t: CaseContext, task: Omit<RankTask, 'rank' | 'ranks'>): Promise<RankEnd>[] {
  const ranks = t.devices.length
  const children = t.devices.map((_, rank) => {
    const child = fork(script, [JSON.stringify({ ...task, rank, ranks } satisfies RankTask)], { execArgv: [] })
    t.defer(() => void child.kill('SIGKILL'))
    return child
  })
  return children.map((child) => end(child, children))
}

function end(child: ChildProcess, all: readonly ChildProcess[]): Promise<RankEnd> {
  return new Promise((resolve, reject) => {
    let result: RankEnd['result']
    child.on('message', (received) => {
      const message = received as RankMessage
      if (message.kind === 'result') result = message
      else {
        // An error here is ignored: a rank that has just ended reports its own end.
        for (const other of all) if (other !== child && other.connected) other.send(message, () => undefined)
      }
    })
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ result, code, signal }))
  })
}

const sum: ConformanceCase = {
  name: 'one process a rank: every element of every rank is right',
  requires: { devices: 2 },
  timeout: 120_000,
  async run(t) {
    const ends = await Promise.all(startRanks(t, { elements: 2 ** 18 + 3, ending: 'destroy' }))
    for (const [rank, { result, code }] of ends.entries()) {
      assert.equal(code, 0, `rank ${rank}`)
      assert.equal(result?.wrong, 0, `rank ${rank}`)
    }
  },
}

const leaving: ConformanceCase = {
  name: 'processes that end without destroying anything end cleanly',
  requires: { devices: 2 },
  timeout: 120_000,
  async run(t) {
    const ends = await Promise.all(startRanks(t, { elements: 2 ** 20 + 3, ending: 'leave' }))
    for (const [rank, { code, signal }] of ends.entries()) assert.deepEqual([code, signal], [0, null], `rank ${rank}`)
  },
}

export const processSuite: Suite = { name: 'nccl processes', cases: [sum, leaving] }
