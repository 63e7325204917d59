import { expect, test } from 'vitest'
import { start } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)
const run = (options: readonly string[] = [], environment?: NodeJS.ProcessEnv) => start(main, options, environment).end

test('the tensor grows in place: the address stays, and every row is correct', async () => {
  const { code, output } = await run(['--rows', '3000', '--width', '1024', '--batch', '500'])
  expect(output).toContain('Shoal Software Device (SOFTWARE: this CPU, no GPU)')
  // 3,000 rows of 4 KiB are 11.7 MiB: six pieces of 2 MiB.
  expect(output).toContain('grown in place: 6 times, at most 12.0 MiB at once')
  expect(output).toMatch(/address: (0x[\da-f]+) at first, \1 now \(the same\)/)
  // Doubling from one row: 1 + 2 + … + 2048 rows were copied.
  expect(output).toContain(`grown by copying: 12 times, at most ${(((2048 + 4096) * 4) / 1024).toFixed(1)} MiB at once`)
  expect(output).toContain(`copied: ${4095 * 4096} bytes`)
  expect(output).toContain('checked: all 3000 rows are right')
  expect(code).toBe(0)
})

test('rows may end within an allocation granule', async () => {
  const { code, output } = await run(['--rows', '7', '--width', '333333', '--batch', '3'])
  expect(output).toContain('checked: all 7 rows are right')
  expect(code).toBe(0)
})

test("more rows than the device can hold fail with one line and the driver's error", async () => {
  const { code, errors } = await run(['--rows', '3000'], { SHOAL_SIM_MEMORY_BYTES: '4194304' })
  expect(errors).toMatch(/^growable-tensor: cu\w+ failed: CUDA_ERROR_OUT_OF_MEMORY/m)
  expect(errors).not.toContain('    at ')
  expect(code).toBe(2)
})

test('the program leaves nothing for the garbage collector', async () => {
  const { errors } = await run(['--rows', '100'])
  expect(errors).not.toContain('ShoalLeakWarning')
})

test.each([
  [['--rows', '0'], '--rows must be a whole number'],
  [['--width', '1.5'], '--width must be a whole number'],
  [['--nonsense'], '--nonsense'],
])('wrong options are refused: %j', async (options, words) => {
  const { code, errors } = await run(options)
  expect(errors).toContain(words)
  expect(code).toBe(2)
})

test('without a driver the program prints a remedy', async () => {
  const { code, errors } = await run([], { SHOAL_DEVICE: '', SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' })
  expect(errors).toContain('growable-tensor: ')
  expect(errors).toContain('/nowhere/libcuda.so.1')
  expect(code).toBe(2)
})
