import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'

const script = fileURLToPath(new URL('fixtures/operationsRank.mjs', import.meta.url))
const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

interface Results {
  readonly allToAll: number[]
  readonly gather?: number[]
  readonly scatter: number[]
  readonly ring: number[]
  readonly preMulSum: number[]
  readonly put: number[]
  readonly peers: (number | null)[]
}

/** Returns each rank's results, from separate processes. */
async function run(worldSize: number): Promise<Results[]> {
  for (let rank = 0; rank < worldSize; rank += 1) {
    const env = {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: String(worldSize),
    }
    const child = fork(script, [JSON.stringify([rank, worldSize])], { env, execArgv: [] })
    children.push(child)
  }
  return Promise.all(
    children.map(
      (child) =>
        new Promise<Results>((resolve, reject) => {
          let results: Results | undefined
          child.on('message', (received: { id?: string; results?: Results }) => {
            results ??= received.results
            if (received.id === undefined) return
            for (const other of children) if (other !== child) other.send(received)
          })
          child.once('error', reject)
          child.once('close', (code, signal) => {
            if (code === 0 && results !== undefined) resolve(results)
            else reject(new Error(`a rank ended with ${code ?? signal}`))
          })
        }),
    ),
  )
}

test.each([2, 3])(
  'every operation works between %i processes',
  async (worldSize) => {
    const all = await run(worldSize)
    const ranks = all.map((_, rank) => rank)
    for (const [rank, results] of all.entries()) {
      const previous = (rank + worldSize - 1) % worldSize
      expect(results).toEqual({
        allToAll: ranks.map((other) => 10 * other + rank),
        ...(rank === 1 ? { gather: ranks.map((other) => 10 * other) } : {}),
        scatter: [rank],
        ring: [10 * previous, 10 * previous + 1],
        preMulSum: [ranks.reduce((sum, other) => sum + other + 1, 0)],
        put: [100 + previous, 200 + previous],
        peers: ranks.map((other) => 100 + ((other + worldSize - 1) % worldSize)),
      })
    }
  },
  30_000,
)
