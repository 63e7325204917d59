import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { afterThisTest } from './support/jobs.js'

const worldSize = 1024

function start(program: string, ...words: (string | number)[]): ChildProcess {
  const path = fileURLToPath(new URL(`fixtures/${program}.mjs`, import.meta.url))
  const child = fork(path, words.map(String))
  afterThisTest(() => void child.kill('SIGKILL'))
  return child
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const [answer] = await once(child, 'message')
  return answer
}

function ask(child: ChildProcess, action: string): Promise<unknown> {
  const answer = answerOf(child)
  child.send(action)
  return answer
}

test('1,024 ranks join, meet in a barrier, and lose half of them: the server takes at most 2 s for each step', {
  timeout: 600_000,
}, async () => {
  const secret = randomBytes(32).toString('hex')
  const server = start('manyRanksServer', worldSize, secret)
  const address = String(await answerOf(server))
  const halves = [0, 512].map((from) => start('manyRanks', worldSize, from, from + 512, address, secret))
  const [left, killed] = halves as [ChildProcess, ChildProcess]
  await Promise.all(halves.map(answerOf))
  // Processor time, which hardly depends on other work of the machine.
  const spent = async () => (await ask(server, 'tell')) as { milliseconds: number; lost: number; rejections: string[] }
  await spent()

  await Promise.all(halves.map((half) => ask(half, 'join')))
  const joining = await spent()
  // The flood protection accepted all of them.
  expect(joining.rejections.filter((reason) => reason.includes('too many'))).toEqual([])
  expect(await Promise.all(halves.map((half) => ask(half, 'barrier')))).toEqual([['passed'], ['passed']])
  const waiting = await spent()

  killed.kill('SIGKILL')
  await ask(left, 'allKnown')
  expect(await ask(left, 'barrier')).toEqual(['SHOAL_RANKS_LOST'])
  expect(await ask(left, 'survivors')).toEqual([512])
  const losing = await spent()
  expect(losing.lost).toBe(512)
  for (const { milliseconds } of [joining, waiting, losing]) expect(milliseconds).toBeLessThanOrEqual(2000)
})
