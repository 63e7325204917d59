import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] ??= 'sim'
const { runCase } = await import('@shoal/conformance')

const suite = { name: 'a suite', cases: [] }

test('a case that cannot run is skipped with its reason, and cleaned up', async () => {
  let cleaned = false
  const result = await runCase(suite, {
    name: 'of a newer library',
    run(t) {
      t.defer(() => {
        cleaned = true
      })
      t.skip('the library has no such function')
    },
  })
  expect(result).toMatchObject({ outcome: 'skip', reason: 'the library has no such function' })
  expect(cleaned).toBe(true)
})

test('a skip does not hide a failed cleanup', async () => {
  const result = await runCase(suite, {
    name: 'left in disorder',
    run(t) {
      t.defer(() => {
        throw new Error('cannot clean up')
      })
      t.skip('not here')
    },
  })
  expect(result.outcome).toBe('fail')
})
