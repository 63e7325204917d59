import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

test('dropped objects of the other entries are reported and freed', async () => {
  const result = await runFixture('entryLeaks.mjs', undefined, { nodeArguments: ['--expose-gc', '--no-warnings'] })
  expect(result.stderr.replace(/^shoal: software device in use.*\n/m, '')).toBe('')
  expect(result.code).toBe(0)
  const { warnings, before, after, open } = JSON.parse(result.stdout)
  const messages = warnings.map((warning: { message: string }) => warning.message).sort()
  expect(messages).toEqual([
    expect.stringMatching(/^A DeviceBuffer of \d+ bytes on device 0 was dropped without dispose\(\)/),
    expect.stringContaining('A GreenContext of device 0 was dropped without dispose()'),
    expect.stringContaining('A GreenContext of device 0 was dropped without dispose()'),
    expect.stringContaining('A Stream of device 0 was dropped without dispose()'),
    expect.stringContaining('An ExternalMemory of 4096 bytes was dropped without dispose()'),
    expect.stringContaining('An ExternalSemaphore was dropped without dispose()'),
  ])
  expect(after).toBe(before)
  expect(open).toBe(0)
})
