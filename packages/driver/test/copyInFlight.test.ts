import { describe, expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

const mebibyte = 2 ** 20

// Above 8 MiB the data are copied out in slices, between which other work of the event loop runs.
describe.each([1, 8, 64])('reading %i MiB', (mebibytes) => {
  test.each(['dispose', 'reset', 'asyncDispose', 'disposeThenReset'])(
    'is not disturbed by %s during the read',
    async (way) => {
      const result = await runFixture('copyInFlight.mjs', undefined, { arguments: [way, String(mebibytes * mebibyte)] })
      expect(result.signal).toBeNull()
      expect(result.code).toBe(0)
      expect(JSON.parse(result.stdout)).toEqual({ equal: true, active: false })
    },
  )
})
