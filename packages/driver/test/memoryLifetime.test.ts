import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

/** Number of ranges; SHOAL_RANGES=10000 for a long run. */
const ranges = process.env['SHOAL_RANGES'] ?? '4000'
const mebibyte = 2 ** 20

async function outcome<T = Record<string, unknown>>(way: string, ...more: string[]): Promise<T> {
  // With a small young generation the JavaScript heap stays constant, so any growth comes from the package.
  const nodeArguments = ['--expose-gc', '--no-warnings', '--max-semi-space-size=1']
  const result = await runFixture('memoryLifetime.mjs', undefined, { arguments: [way, ...more], nodeArguments })
  expect(result.signal).toBeNull()
  expect(result.stderr.replace(/^shoal: software device.*\n/, '')).toBe('')
  expect(result.code).toBe(0)
  return JSON.parse(result.stdout) as T
}

const disposed = 'DisposedError'

test('dropped memory objects are reported and freed, including descriptors', async () => {
  const { warnings, before, after, active } = await outcome<{
    warnings: string[]
    before: { used: number; descriptors: number }
    after: { used: number; descriptors: number }
    active: boolean
  }>('leak')
  for (const warning of warnings) expect(warning).toMatch(/^ShoalLeakWarning: .* was dropped without dispose\(\); /)
  for (const what of [
    /PhysicalMemory of 2097152 bytes/,
    /An AddressRange of 4194304 bytes/,
    /A MappedRange of 2097152 bytes/,
    /A GrowableRange of 8388608 bytes/,
    /A MulticastObject of 2097152 bytes/,
    /A MemoryPool of device 0/,
    /DescriptorHandle \d+ .*; its descriptor is closed/,
  ]) {
    expect(warnings.filter((warning) => what.test(warning))).toHaveLength(1)
  }
  expect(warnings).toHaveLength(7)
  expect(after.used).toBe(before.used)
  expect(after.descriptors).toBe(before.descriptors)
  expect(active).toBe(false)
})

test('after a reset all objects of the device throw on use, and all can be disposed', async () => {
  const { refused, gone, works, left, active } = await outcome('reset')
  expect(refused).toEqual({
    physical: disposed,
    mapped: disposed,
    access: disposed,
    view: disposed,
    growable: disposed,
    resize: disposed,
    multicast: disposed,
    pool: disposed,
    // Addresses belong to no device.
    range: 'done',
  })
  expect(new Set(Object.values(gone as object))).toEqual(new Set(['done']))
  expect(new Set(Object.values(works as object))).toEqual(new Set(['done']))
  expect(left).toBe(0)
  expect(active).toBe(false)
})

test('objects of a disposed device keep working, and the context ends with the last of them', async () => {
  const { works, before, gone, active } = await outcome('deviceDisposed')
  expect(new Set(Object.values(works as object))).toEqual(new Set(['done']))
  expect(before).toBe(true)
  expect(new Set(Object.values(gone as object))).toEqual(new Set(['done']))
  expect(active).toBe(false)
})

test('a reset waits for a mapping whose disposal has started', async () => {
  expect(await outcome('resetWhileDisposing')).toEqual({ order: ['unmapped', 'reset'], left: 0, active: false })
})

test('a process exits with everything open and work in flight', async () => {
  expect(await outcome('exit')).toBe('leaving')
})

test(`making, mapping, sharing and disposing ${ranges} ranges leaks nothing`, async () => {
  type State = Record<'used' | 'descriptors' | 'resident' | 'addresses', number>
  const { before, after } = await outcome<Record<'before' | 'after', State>>('ranges', ranges)
  console.log(`${ranges} ranges: resident ${before.resident} before, ${after.resident} bytes after`)
  expect(after.used).toBe(before.used)
  expect(after.descriptors).toBe(before.descriptors)
  // One kilobyte per range. The process itself grows and shrinks by up to 2 MiB meanwhile.
  expect(after.resident - before.resident).toBeLessThan(Number(ranges) * 1024)
  // A single leaked range would be 128 MiB of addresses.
  expect(after.addresses - before.addresses).toBeLessThan(128 * mebibyte)
}, 120_000)
