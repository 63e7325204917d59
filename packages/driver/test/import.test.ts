import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

test.skipIf(process.platform !== 'linux')('importing loads no native library at all', async () => {
  const result = await runFixture('importOnly.mjs', {})
  expect(result.stderr).toBe('')
  expect(result.code).toBe(0)
  const files = JSON.parse(result.stdout) as string[]
  expect(files.length).toBeGreaterThan(0)
  expect(files.filter((file) => /cuda|nvidia|nccl|nvshmem|shoal|koffi/i.test(file.split('/').at(-1) ?? ''))).toEqual([])
})
