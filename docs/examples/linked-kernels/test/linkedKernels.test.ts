import { expect, test } from 'vitest'
import { start } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)

test.each([
  ['square', '0.5', 'x × x'],
  ['double', '-3', 'x + x'],
  ['negate', '0', '-x'],
])('linked apply runs %s, and adds %s', async (operation, summand, text) => {
  const { code, output, errors } = await start(main, [operation, summand], { SHOAL_SIM_DEVICES: '2' }).end
  expect(output).toContain(`linked map (1 kernel) with apply(x) = ${text} + ${summand}`)
  expect(output).toContain('device 0: 1000 elements are right')
  expect(output).toContain('device 1: 1000 elements are right')
  expect(errors).not.toContain('ShoalLeakWarning')
  expect(code).toBe(0)
})

test('failures are reported in one line', async () => {
  const unknown = await start(main, ['cube']).end
  expect(unknown.errors).toContain('linked-kernels: give one of square, double, negate and a number')
  expect(unknown.code).toBe(2)
  const { code, errors } = await start(main, [], { SHOAL_DEVICE: '', SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' }).end
  expect(errors).toContain('linked-kernels: ')
  expect(code).toBe(2)
})
