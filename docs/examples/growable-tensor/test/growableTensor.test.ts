import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))

function run(options: readonly string[] = [], environment: NodeJS.ProcessEnv = {}) {
  const env = { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_CUDA_LIBRARY: '', ...environment }
  return spawnSync(process.execPath, [main, ...options], { env, encoding: 'utf8' })
}

test('grows in place: the address stays, every row is right', () => {
  const { status, stdout } = run(['--rows', '3000', '--width', '1024', '--batch', '500'])
  expect(stdout).toContain('Shoal Software Device (SOFTWARE: this CPU, no GPU)')
  // 3,000 rows of 4 KiB are 11.7 MiB: six pieces of 2 MiB.
  expect(stdout).toContain('grown in place: 6 times, at most 12.0 MiB at once')
  expect(stdout).toMatch(/address: (0x[\da-f]+) at first, \1 now \(the same\)/)
  // Doubling from one row: 1 + 2 + … + 2048 rows were copied.
  expect(stdout).toContain(`grown by copying: 12 times, at most ${(((2048 + 4096) * 4) / 1024).toFixed(1)} MiB at once`)
  expect(stdout).toContain(`copied: ${4095 * 4096} bytes`)
  expect(stdout).toContain('checked: all 3000 rows are right')
  expect(status).toBe(0)
})

test('a row that is not whole bytes of the granularity', () => {
  const { status, stdout } = run(['--rows', '7', '--width', '333333', '--batch', '3'])
  expect(stdout).toContain('checked: all 7 rows are right')
  expect(status).toBe(0)
})

test('what does not fit the device is told in one line, with the error of the driver', () => {
  const { status, stderr } = run(['--rows', '3000'], { SHOAL_SIM_MEMORY_BYTES: '4194304' })
  expect(stderr).toMatch(/^growable-tensor: cu\w+ failed: CUDA_ERROR_OUT_OF_MEMORY/m)
  expect(stderr).not.toContain('    at ')
  expect(status).toBe(2)
})

test('leaves nothing behind that a collector would have to find', () => {
  const { stderr } = run(['--rows', '100'])
  expect(stderr).not.toContain('ShoalLeakWarning')
})

test.each([
  [['--rows', '0'], '--rows must be a whole number'],
  [['--width', '1.5'], '--width must be a whole number'],
  [['--nonsense'], '--nonsense'],
])('wrong options: %j', (options, words) => {
  const { status, stderr } = run(options)
  expect(stderr).toContain(words)
  expect(status).toBe(2)
})

test('without a driver it says what to do about it', () => {
  const { status, stderr } = run([], { SHOAL_DEVICE: '', SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' })
  expect(stderr).toContain('growable-tensor: ')
  expect(stderr).toContain('/nowhere/libcuda.so.1')
  expect(status).toBe(2)
})
