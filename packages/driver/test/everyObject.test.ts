import { afterAll, expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'
import { left, leftSince } from './support/left.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device } = await import('@shoal/driver')
const { kinds } = (await import('./fixtures/everyObject.mjs' as string)) as {
  readonly kinds: { readonly [name: string]: () => readonly Disposable[] }
}

afterAll(() => Device.get(0).dispose())

test.each(Object.entries(kinds))(
  '%s has something of the driver, and gives it back with dispose()',
  async (_name, make) => {
    // What a package keeps for itself is there from the first time on.
    for (const one of make()) one[Symbol.dispose]()
    const before = left()
    const made = make()
    expect(await leftSince(before, 1)).not.toBe('')
    for (const one of made) one[Symbol.dispose]()
    expect(await leftSince(before)).toBe('')
  },
)

test('while the process ends nothing is given back any more: that could wait for work', async () => {
  // A reference to a user object is given up all the same, which waits for nothing.
  const reports = await Promise.all(
    ['keep', 'dispose'].map(async (way) => {
      const environment = { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2', SHOAL_SIM_LEAKS: '1' }
      const { code, stderr } = await runFixture('everyObject.mjs', environment, { arguments: [way] })
      expect(code).toBe(0)
      return stderr.split('\n').filter((line) => line.includes('left at exit') && !line.includes('user objects'))
    }),
  )
  expect(reports[0]?.length).toBeGreaterThan(15)
  expect(reports[1]).toEqual(reports[0])
})
