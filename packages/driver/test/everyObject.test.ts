import { afterEach, describe, expect, test, vi } from 'vitest'
import { runFixture } from './support/fixture.js'
import { left, leftSince } from './support/left.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, DisposedError } = await import('@shoal/driver')
const { kinds, toldOf } = (await import('./fixtures/everyObject.mjs' as string)) as {
  readonly kinds: { readonly [name: string]: (device: unknown) => readonly (Disposable & AsyncDisposable)[] }
  readonly toldOf: (name: string) => number
}

/** Objects without a context, or with a context of their class. */
const ofNoContext = ['AddressRange', 'PhysicalMemory', 'MappedRange', 'MulticastObject', 'CreatedContext', 'UserObject']
afterEach(() => Device.get(0).dispose())

describe.each(Object.entries(kinds))('%s', (name, make) => {
  test('holds a driver resource, and dispose() releases it', async () => {
    const device = Device.get(0)
    // Create the objects that the package caches, before the measurement.
    for (const one of make(device)) await one[Symbol.asyncDispose]()
    const before = left()
    const made = make(device)
    expect(await leftSince(before, 1)).not.toBe('')
    for (const one of made) one[Symbol.dispose]()
    expect(await leftSince(before)).toBe('')
  })

  test('keeps its context alive until the last object in it is disposed', async () => {
    const device = Device.get(0)
    const made = make(device)
    device.dispose()
    for (const one of made) {
      if (!ofNoContext.includes(name)) expect(device.primaryContextState.active).toBe(true)
      one[Symbol.dispose]()
    }
    await vi.waitFor(() => expect(device.primaryContextState.active).toBe(false), { timeout: 60_000 })
  })

  test('is invalidated by a reset of its device, and dispose() then does nothing', async () => {
    const device = Device.get(0)
    const made = make(device)
    await device.reset()
    for (const one of made) {
      for (const property of ['handle', 'address', 'array'].filter((each) => each in one)) {
        if (!ofNoContext.includes(name)) expect(() => Reflect.get(one, property), property).toThrow(DisposedError)
      }
      one[Symbol.dispose]()
      expect((one as { disposed?: boolean }).disposed).toBe(true)
    }
    expect(device.primaryContextState.active).toBe(false)
  })
})

test('the garbage collector reports exactly the objects dropped without dispose()', async () => {
  const environment = { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' }
  const [dropped, ended] = await Promise.all(
    ['drop', 'end'].map(async (way) => {
      const options = { arguments: [way], nodeArguments: ['--expose-gc', '--no-warnings'] }
      const { code, stdout, stderr } = await runFixture('everyObject.mjs', environment, options)
      expect([code, stderr.replaceAll(/^shoal: software.*\n/gm, '')]).toEqual([0, ''])
      return JSON.parse(stdout) as Record<string, string[]>
    }),
  )
  const none = Object.fromEntries(Object.keys(kinds).map((name) => [name, []]))
  expect(ended).toEqual(none)
  expect(Object.keys(dropped ?? {})).toEqual(Object.keys(kinds))
  for (const [name, warnings] of Object.entries(dropped ?? {})) {
    for (const warning of warnings) expect(warning, name).toMatch(/^ShoalLeakWarning: .* was dropped without \w+\(\); /)
    expect(warnings.length, name).toBe(toldOf(name))
  }
})

test('nothing is freed during process exit, because that could wait for work', async () => {
  // A reference to a user object is released anyway, because that waits for nothing.
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
