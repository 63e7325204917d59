import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

interface Cost {
  readonly milliseconds: number
  readonly bytes: number
}

/** The least of several runs: what else the machine does only ever adds. */
async function cost(specifier: string): Promise<Cost> {
  const runs: Cost[] = []
  for (let run = 0; run < 5; run += 1) {
    const result = await runFixture('importCost.mjs', {}, { arguments: [specifier] })
    expect(result.stderr).toBe('')
    runs.push(JSON.parse(result.stdout) as Cost)
  }
  return {
    milliseconds: Math.min(...runs.map((run) => run.milliseconds)),
    bytes: Math.min(...runs.map((run) => run.bytes)),
  }
}

test('importing takes at most 40 ms and 12 MB', async () => {
  const bare = await cost('./empty.mjs')
  const driver = await cost('@shoal/driver')
  expect(driver.milliseconds).toBeLessThanOrEqual(40)
  expect((driver.bytes - bare.bytes) / 2 ** 20).toBeLessThanOrEqual(12)
})

test.skipIf(process.platform !== 'linux')('importing loads no native library at all', async () => {
  const result = await runFixture('importOnly.mjs', {})
  expect(result.stderr).toBe('')
  expect(result.code).toBe(0)
  const files = JSON.parse(result.stdout) as string[]
  expect(files.length).toBeGreaterThan(0)
  expect(files.filter((file) => /cuda|nvidia|nccl|nvshmem|shoal|koffi/i.test(file.split('/').at(-1) ?? ''))).toEqual([])
})
