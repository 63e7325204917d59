import { describe, expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

const mebibyte = 2 ** 20

// Data above 8 MiB is copied in slices, between which the event loop runs other work.
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
