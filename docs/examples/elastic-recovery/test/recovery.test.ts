import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const shoal = join(dirname(createRequire(import.meta.url).resolve('@shoal/cli')), '..', 'bin', 'shoal.js')

function run(ranks: number, deaths: readonly string[]): Promise<{ code: number | null; output: string }> {
  const env = {
    ...process.env,
    SHOAL_DEVICE: 'sim',
    SHOAL_SIM_DEVICES: String(ranks),
    SHOAL_CUDA_LIBRARY: '',
    SHOAL_NCCL_LIBRARY: '',
  }
  const words = [
    shoal,
    'run',
    '-n',
    String(ranks),
    '--on-failure',
    'continue',
    main,
    ...deaths.flatMap((at) => ['--kill', at]),
  ]
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}

test.each([
  [3, [], '3 3 3 3 3 3 3 3 3 3'],
  [3, ['1@4'], '3 3 3 3 2 2 2 2 2 2'],
  [4, ['0@2', '3@6'], '4 4 3 3 3 3 2 2 2 2'],
  [2, ['0@0'], '1 1 1 1 1 1 1 1 1 1'],
])('%i ranks, killed: %j', { timeout: 60_000 }, async (ranks, deaths, counts) => {
  const { code, output } = await run(ranks, deaths)
  const ends = output.match(new RegExp(`10 steps, ${counts} ranks in them, 0 of 1000 elements wrong`, 'g'))
  expect(ends, output).toHaveLength(ranks - deaths.length)
  expect(code, output).toBe(0)
})
