import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))

function run(environment: NodeJS.ProcessEnv) {
  const env = { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_CUDA_LIBRARY: '', ...environment }
  return spawnSync(process.execPath, [main], { env, encoding: 'utf8' })
}

test.each([1, 2, 4])('one write lands on all of %i software devices', (count) => {
  const { status, stdout, stderr } = run({ SHOAL_SIM_DEVICES: String(count) })
  expect(stdout).toContain('device 0: Shoal Software Device (SOFTWARE: this CPU, no GPU), multicast supported')
  expect(stdout).toMatch(/granularity: minimum \d+ bytes, recommended \d+ bytes/)
  const bytes = Number(stdout.match(/wrote (\d+) bytes once/)?.[1])
  expect(bytes).toBeGreaterThan(0)
  for (let device = 0; device < count; device += 1) {
    expect(stdout).toContain(`device ${device}: all ${bytes / 4} elements arrived`)
  }
  expect(stderr).not.toContain('ShoalLeakWarning')
  expect(status).toBe(0)
})

test('without a driver it says so in one line', () => {
  const { status, stderr } = run({ SHOAL_DEVICE: '', SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' })
  expect(stderr).toContain('multicast: ')
  expect(stderr).toContain('/nowhere/libcuda.so.1')
  expect(status).toBe(2)
})
