import { expect, test } from 'vitest'
import { start } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)

test.each([1, 2, 3])(
  'a step on %i software devices is captured and launched, and equals the separate calls',
  async (count) => {
    const { code, output, errors } = await start(main, [], { SHOAL_SIM_DEVICES: String(count) }).end
    expect(output).toContain(`${count} × Shoal Software Device (SOFTWARE: this CPU, no GPU), 1000 weights`)
    // Two kernels a device, one collective a device, ten times.
    expect(output).toMatch(new RegExp(`10 steps are a graph of ${count * 30} nodes and \\d+ edges`))
    expect(output).toMatch(/the host's part of a step: [\d.]+ µs by calls, [\d.]+ µs by the graph/)
    expect(output).toContain('after 401 steps the weights are right')
    expect(errors).not.toContain('ShoalLeakWarning')
    expect(code).toBe(0)
  },
)

test('without a driver the program fails with one line', async () => {
  const { code, errors } = await start(main, [], { SHOAL_DEVICE: '', SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' }).end
  expect(errors).toContain('captured-step: ')
  expect(code).toBe(2)
})
