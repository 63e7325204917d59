import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { afterThisTest, sleep } from './support/jobs.js'

const [here, there] = ['here', 'there'].map((name) => `shoal-${process.pid}-${name}`) as [string, string]
const addresses = { [here]: '10.213.77.1', [there]: '10.213.77.2' }
const secret = randomBytes(16).toString('hex')

function ip(...words: string[]): void {
  execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/**
 * Creates two machines with a cable between them, as network namespaces. Returns why this machine does not allow it.
 */
function makeMachines(): string | undefined {
  try {
    for (const name of [here, there]) {
      ip('netns', 'add', name)
      afterThisTest(() => ip('netns', 'delete', name))
    }
    ip('-n', here, 'link', 'add', 'cable', 'type', 'veth', 'peer', 'name', 'cable', 'netns', there)
    for (const name of [here, there]) {
      ip('-n', name, 'address', 'add', `${addresses[name]}/24`, 'dev', 'cable')
      for (const device of ['lo', 'cable']) ip('-n', name, 'link', 'set', device, 'up')
    }
    return undefined
  } catch (error) {
    return `no network namespaces here (they need root and iproute2): ${String((error as Error).message).split('\n')[0]}`
  }
}

/** Cuts the cable: messages are lost without an error. Each side treats the other one as a missing network card. */
function cut(): void {
  for (const [name, other] of [
    [here, there],
    [there, here],
  ] as const) {
    const nobody = ['lladdr', '02:00:00:00:00:01', 'nud', 'permanent', 'dev', 'cable']
    ip('-n', name, 'neigh', 'replace', addresses[other] as string, ...nobody)
  }
}

interface Said {
  readonly at: number
  readonly words: Record<string, unknown>
}

/** Starts a process on one of the machines and collects its output. */
function start(machine: string, program: string, words: string[], env: Record<string, string> = {}) {
  const path = fileURLToPath(new URL(`fixtures/${program}.mjs`, import.meta.url))
  const child: ChildProcess = spawn('ip', ['netns', 'exec', machine, process.execPath, path, ...words], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  afterThisTest(() => void child.kill('SIGKILL'))
  const said: Said[] = []
  let text = ''
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    const lines = text.split('\n')
    text = lines.pop() as string
    for (const line of lines) said.push({ at: performance.now(), words: JSON.parse(line) as Record<string, unknown> })
  })
  return { child, said }
}

/**
 * Returns a function for the maximum delay of this process's timers in milliseconds, which a busy machine adds to
 * everything.
 */
function watchLateness(): () => number {
  let worst = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    worst = Math.max(worst, now - last - 100)
    last = now
  }, 100)
  afterThisTest(() => clearInterval(timer))
  return () => worst
}

describe('a machine without a network connection', () => {
  test('is detected within 20 s by both sides, for all of its ranks; a stopped rank is not lost', {
    timeout: 600_000,
  }, async (context) => {
    const problem = makeMachines()
    if (problem !== undefined) return context.skip(problem)
    const worldSize = 7
    const server = start(here, 'cutOffServer', [String(worldSize), addresses[here] as string, secret])
    await expect.poll(() => server.said.length, { timeout: 120_000 }).toBe(1)
    const { address } = server.said[0]!.words
    const variables = (rank: number) => ({
      SHOAL_RENDEZVOUS: String(address),
      SHOAL_SECRET: secret,
      RANK: String(rank),
      WORLD_SIZE: String(worldSize),
    })
    const ranks = Array.from({ length: worldSize }, (_, rank) =>
      start(rank < 3 ? here : there, 'cutOffRank', [rank % 2 === 0 ? 'busy' : 'idle', '4'], variables(rank)),
    )
    await expect.poll(() => ranks.every(({ said }) => said.length === 1), { timeout: 120_000 }).toBe(true)
    await sleep(1000)

    const lateness = watchLateness()
    // The process that answers the kernel's questions is not affected.
    ranks[1]!.child.kill('SIGSTOP')
    cut()
    const beginning = performance.now()
    await expect.poll(() => server.said.length, { timeout: 300_000 }).toBe(5)
    const cutOff = ranks.slice(3)
    await expect.poll(() => cutOff.every(({ said }) => said.length === 3), { timeout: 300_000 }).toBe(true)
    await expect.poll(() => [0, 2].every((rank) => ranks[rank]!.said.length === 2), { timeout: 300_000 }).toBe(true)
    const times = [server.said.slice(1), ...ranks.map(({ said }) => said.slice(1, 2))]
      .flat()
      .map(({ at }) => at - beginning)
    expect(Math.max(...times)).toBeLessThan(20_000 + 10 * lateness())

    expect(server.said.slice(1).map(({ words }) => words['lost'])).toEqual(expect.arrayContaining([3, 4, 5, 6]))
    for (const [index, { said }] of cutOff.entries()) {
      const rank = 3 + index
      expect(said[1]!.words).toEqual({ rank, lost: [], reason: 'SHOAL_RENDEZVOUS_LOST' })
      expect(said[2]!.words).toEqual({ rank, failed: 'SHOAL_RENDEZVOUS_LOST' })
    }
    ranks[1]!.child.kill('SIGCONT')
    const left = ranks.slice(0, 3)
    await expect.poll(() => left.every(({ said }) => said.length === 3), { timeout: 300_000 }).toBe(true)
    for (const [rank, { said }] of left.entries()) {
      expect(said[1]!.words).toEqual({ rank, lost: [3, 4, 5, 6], reason: 'SHOAL_RANKS_LOST' })
      expect(said[2]!.words).toEqual({ rank, left: 3 })
    }
  })
})
