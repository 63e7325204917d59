import { expect, test } from 'vitest'
import { start } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)
const run = (environment: NodeJS.ProcessEnv) => start(main, [], environment).end

test.each([1, 2, 4])('one write reaches all %i software devices', async (count) => {
  const { code, output, errors } = await run({ SHOAL_SIM_DEVICES: String(count) })
  expect(output).toContain('device 0: Shoal Software Device (SOFTWARE: this CPU, no GPU), multicast supported')
  expect(output).toMatch(/granularity: minimum \d+ bytes, recommended \d+ bytes/)
  const bytes = Number(output.match(/wrote (\d+) bytes once/)?.[1])
  expect(bytes).toBeGreaterThan(0)
  for (let device = 0; device < count; device += 1) {
    expect(output).toContain(`device ${device}: all ${bytes / 4} elements arrived`)
  }
  expect(errors).not.toContain('ShoalLeakWarning')
  expect(code).toBe(0)
})

test('without a driver the program fails with one line', async () => {
  const { code, errors } = await run({ SHOAL_DEVICE: '', SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' })
  expect(errors).toContain('multicast: ')
  expect(errors).toContain('/nowhere/libcuda.so.1')
  expect(code).toBe(2)
})
