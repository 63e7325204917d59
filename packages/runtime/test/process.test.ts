import { describe, expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

const withoutNotice = (text: string): string => text.replace(/^shoal: software device.*\n/, '')

describe('loading libcudart', () => {
  test('names a missing file in the error', async () => {
    const environment = { SHOAL_DEVICE: 'sim', SHOAL_CUDART_LIBRARY: '/nowhere/libcudart.so.13' }
    const result = await runFixture('library.mjs', environment, { arguments: ['error'] })
    expect(result.code).toBe(0)
    const { name, message } = JSON.parse(result.stdout)
    expect(name).toBe('LibraryNotFoundError')
    expect(message).toContain('/nowhere/libcudart.so.13')
  })

  test('importing loads no native library and takes milliseconds', async ({ skip }) => {
    skip(process.platform !== 'linux', 'reads /proc/self/maps, which only Linux has')
    const result = await runFixture('library.mjs', {}, { arguments: ['import'] })
    expect(result.stderr).toBe('')
    const files = JSON.parse(result.stdout) as string[]
    expect(files.length).toBeGreaterThan(0)
    expect(files.filter((file) => /cuda|nvidia|shoal|koffi/i.test(file.split('/').at(-1) ?? ''))).toEqual([])
  })

  test('returns 0 for a machine without devices', async () => {
    const environment = { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '0' }
    const result = await runFixture('library.mjs', environment, { arguments: ['count'] })
    expect(JSON.parse(result.stdout)).toEqual({ count: 0, get: 'RangeError' })
  })

  test('respects the per-thread stream mode', async () => {
    const result = await runFixture('library.mjs', undefined, { arguments: ['perThread'] })
    expect(withoutNotice(result.stderr)).toBe('')
    expect(JSON.parse(result.stdout)).toEqual({ handle: '2', mode: 'per-thread', data: [7, 7, 7], isStillBusy: true })
  })

  test("of NVIDIA without a GPU throws an error of NVIDIA's libcudart, if installed", async ({ skip }) => {
    const result = await runFixture('library.mjs', {}, { arguments: ['real'] })
    const answer = JSON.parse(result.stdout)
    skip(answer.missing === true, 'libcudart is not installed')
    skip(answer.count > 0, 'there is a GPU: the conformance suite asks it')
    expect(answer.version).toBeGreaterThanOrEqual(11000)
    if (answer.count === 0) return
    expect(answer.library).toBe('CUDA runtime')
    expect(answer.code).toMatch(/^cudaError/)
    expect(answer.description.length).toBeGreaterThan(10)
  })
})

describe('dropped objects of the runtime package', () => {
  test('are reported and freed', async () => {
    const result = await runFixture('leaks.mjs', undefined, { nodeArguments: ['--expose-gc', '--no-warnings'] })
    expect(result.code).toBe(0)
    const { warnings, before, after } = JSON.parse(result.stdout)
    expect(warnings.map((warning: { name: string }) => warning.name)).toEqual(Array(7).fill('ShoalLeakWarning'))
    const messages = warnings.map((warning: { message: string }) => warning.message).sort()
    expect(messages).toEqual([
      expect.stringContaining('A DeviceBuffer of 20000000 bytes on device 0 was dropped without dispose()'),
      expect.stringContaining('A DeviceBuffer of 40000000 bytes on device 0 was dropped without dispose()'),
      expect.stringContaining('A ManagedBuffer of 3000000 bytes was dropped without dispose()'),
      expect.stringContaining('A MemoryPool of device 0 was dropped without dispose()'),
      expect.stringContaining('A PinnedBuffer of 1000 bytes was dropped without dispose()'),
      expect.stringContaining('A Stream of device 0 was dropped without dispose()'),
      expect.stringContaining('An Event of device 0 was dropped without dispose()'),
    ])
    expect(before - after).toBeLessThan(1_000_000)
  })
})

describe('the process exits', () => {
  test.each(['process-exit', 'dispose-at-exit', 'natural'])('by %s with work in flight', async (way) => {
    const result = await runFixture('exit.mjs', undefined, { arguments: [way] })
    expect(result.signal).toBeNull()
    expect(withoutNotice(result.stderr)).toBe('')
    expect(result.code).toBe(0)
    expect(result.stdout).toBe(way === 'natural' ? 'all done\n' : '')
    expect(result.milliseconds).toBeLessThan(60_000)
  })
})
