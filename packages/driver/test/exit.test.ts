import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

test.each(['process-exit', 'dispose-at-exit', 'exit-at-once', 'natural'])(
  'a process that ends by %s with work in flight',
  async (way) => {
    const result = await runFixture('exitWithWork.mjs', undefined, { arguments: [way] })
    expect(result.signal).toBeNull()
    expect(result.stderr.replace(/^shoal: software device.*\n/, '')).toBe('')
    expect(result.code).toBe(0)
    expect(result.stdout).toBe(way === 'natural' ? 'all done\n' : '')
    expect(result.milliseconds).toBeLessThan(60_000)
  },
)

test('an uncaught error ends the process even with work in flight', async () => {
  const result = await runFixture('exitWithWork.mjs', undefined, { arguments: ['uncaught'] })
  expect(result.signal).toBeNull()
  expect(result.code).toBe(1)
  expect(result.stderr).toContain('Error: on purpose')
})

test('an aborted wait does not keep the process alive', async () => {
  const result = await runFixture('giveUp.mjs')
  expect(result.stdout).toBe('TimeoutError\nAbortedError\n')
  expect(result.code).toBe(0)
  expect(result.milliseconds).toBeLessThan(60_000)
})

test('work of a disposed stream does not delay the end of the process', async () => {
  const result = await runFixture('exitLeftBehind.mjs')
  expect(result.stdout).toBe('disposed of\n')
  expect(result.code).toBe(0)
  // Two minutes of work are still in flight.
  expect(result.milliseconds).toBeLessThan(100_000)
})
