import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const shoal = join(dirname(createRequire(import.meta.url).resolve('@shoal/cli')), '..', 'bin', 'shoal.js')

function run(pes: number, program: string): Promise<{ code: number | null; output: string }> {
  const script = fileURLToPath(new URL(`../dist/${program}.js`, import.meta.url))
  const env = {
    ...process.env,
    SHOAL_DEVICE: 'sim',
    SHOAL_SIM_DEVICES: String(pes),
    SHOAL_CUDA_LIBRARY: '',
    SHOAL_NVSHMEM_LIBRARY: '',
  }
  const child = spawn(process.execPath, [shoal, 'run', '-n', String(pes), script], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}

test.each([1, 2, 5])('%i PEs: every block comes to every PE', { timeout: 60_000 }, async (pes) => {
  const { code, output } = await run(pes, 'main')
  expect(output.match(new RegExp(`${pes * 10_007} elements around the ring, 0 wrong`, 'g')), output).toHaveLength(pes)
  expect(code, output).toBe(0)
})

test('the kernel says that it needs GPUs', { timeout: 60_000 }, async () => {
  const { code, output } = await run(2, 'kernel')
  expect(output).toContain('the software device runs no kernels: this example needs GPUs')
  expect(code).not.toBe(0)
})
