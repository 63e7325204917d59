import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

test('what is dropped is reported and freed; what is still reachable is kept', async () => {
  const result = await runFixture('leaks.mjs', undefined, { nodeArguments: ['--expose-gc', '--no-warnings'] })
  expect(result.code).toBe(0)
  const { warnings, before, after, kept } = JSON.parse(result.stdout)
  expect(warnings.every((warning: { name: string }) => warning.name === 'ShoalLeakWarning')).toBe(true)
  const messages = warnings.map((warning: { message: string }) => warning.message).sort()
  expect(messages).toEqual([
    expect.stringContaining('A CachingPool of device 0 was dropped without dispose()'),
    expect.stringMatching(
      /^A DeviceBuffer of 100 bytes .* was dropped without dispose\(\); its memory is back in its pool/,
    ),
    expect.stringContaining('A DeviceBuffer of 20000000 bytes on device 0 was dropped without dispose()'),
    expect.stringContaining('A DeviceBuffer of 40000000 bytes on device 0 was dropped without dispose()'),
    expect.stringContaining('A PinnedBuffer of 1000 bytes was dropped without dispose()'),
    expect.stringContaining('A Stream of device 0 was dropped without dispose()'),
    expect.stringContaining('An Event of device 0 was dropped without dispose()'),
  ])
  expect(before - after).toBeLessThan(1_000_000)
  expect(kept).toEqual({ array: [1, 2, 3], view: [5, 6], warnings: 7 })
})

test('SHOAL_TRACE_LEAKS=1 tells where the object was made', async () => {
  const result = await runFixture(
    'leaks.mjs',
    { SHOAL_DEVICE: 'sim', SHOAL_TRACE_LEAKS: '1' },
    { nodeArguments: ['--expose-gc', '--no-warnings'] },
  )
  const { warnings } = JSON.parse(result.stdout)
  for (const { message } of warnings) expect(message).toMatch(/made at [\s\S]*leaks\.mjs/)
})
