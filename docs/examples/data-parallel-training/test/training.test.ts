import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))

const shoal = join(dirname(createRequire(import.meta.url).resolve('@shoal/cli')), '..', 'bin', 'shoal.js')

function train(ranks: number): Promise<{ code: number | null; output: string }> {
  const env = {
    ...process.env,
    SHOAL_DEVICE: 'sim',
    SHOAL_SIM_DEVICES: String(ranks),
    SHOAL_CUDA_LIBRARY: '',
    SHOAL_NCCL_LIBRARY: '',
  }
  const child = spawn(process.execPath, [shoal, 'run', '-n', String(ranks), main], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}

test.each([1, 3])('%i ranks come to the parameters that one process comes to', async (ranks) => {
  const { code, output } = await train(ranks)
  expect(output).toContain(`, ${ranks} ranks`)
  expect(output).toContain('parameters of 0 ranks differ')
  expect(output).toMatch(/largest distance to training in one process: (0|\d\.\de-1\d)/)
  expect(code, output).toBe(0)
})
