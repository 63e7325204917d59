import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

interface Cost {
  readonly milliseconds: number
  readonly bytes: number
}

/** What one run of a fresh process took. */
async function runOnce(specifier: string): Promise<Cost> {
  // When Node starts its optimizing compiler, megabytes of Node's own code become resident: not the package's cost.
  const options = { arguments: [specifier], nodeArguments: ['--no-opt'] }
  const result = await runFixture('importCost.mjs', {}, options)
  expect(result.stderr).toBe('')
  return JSON.parse(result.stdout) as Cost
}

async function runSeveral(specifier: string): Promise<Cost[]> {
  const runs: Cost[] = []
  for (let run = 0; run < 7; run += 1) runs.push(await runOnce(specifier))
  return runs
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number
}

test('importing takes milliseconds and at most 12 MB', async () => {
  const bare = await runSeveral('./empty.mjs')
  const driver = await runSeveral('@shoal/driver')
  // What else the machine does only ever adds time, but a system that is short of memory takes some from a process, too.
  const resident = (runs: readonly Cost[]): number => median(runs.map((run) => run.bytes))
  expect((resident(driver) - resident(bare)) / 2 ** 20).toBeLessThanOrEqual(12)
  // 30 ms on an idle machine; what runs beside it costs caches, too.
  const most = 80
  const times = driver.map((run) => run.milliseconds)
  while (Math.min(...times) > most && times.length < 16) times.push((await runOnce('@shoal/driver')).milliseconds)
  expect(Math.min(...times)).toBeLessThanOrEqual(most)
})

test('importing loads no native library at all', async ({ skip }) => {
  skip(process.platform !== 'linux', 'reads /proc/self/maps, which only Linux has')
  const result = await runFixture('importOnly.mjs', {})
  expect(result.stderr).toBe('')
  expect(result.code).toBe(0)
  const files = JSON.parse(result.stdout) as string[]
  expect(files.length).toBeGreaterThan(0)
  expect(files.filter((file) => /cuda|nvidia|nccl|nvshmem|shoal|koffi/i.test(file.split('/').at(-1) ?? ''))).toEqual([])
})
