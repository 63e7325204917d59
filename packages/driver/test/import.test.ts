import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

/** Resident bytes of a process that imports this: the least of several, as what else the machine does only ever adds. */
async function residentBytes(specifier: string): Promise<number> {
  const runs: number[] = []
  for (let run = 0; run < 5; run += 1) {
    // When Node starts its optimizing compiler, megabytes of Node's own code become resident: not the package's cost.
    const options = { arguments: [specifier], nodeArguments: ['--no-opt'] }
    const result = await runFixture('importMemory.mjs', {}, options)
    expect(result.stderr).toBe('')
    runs.push(Number(result.stdout))
  }
  return Math.min(...runs)
}

// How long it takes is a figure of the benchmark.
test('importing takes at most 12 MiB', async () => {
  const [bare, driver] = [await residentBytes('./empty.mjs'), await residentBytes('@shoal/driver')]
  expect((driver - bare) / 2 ** 20).toBeLessThanOrEqual(12)
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
