import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { start } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)
const run = (environment: NodeJS.ProcessEnv) => start(main, [], environment).end

test('the Node rank and the Python rank compute the sum', async (context) => {
  if (spawnSync('python3', ['--version']).status !== 0) return context.skip('no python3 here')
  const { code, output } = await run({ NODE_AND_PYTHON: 'ctypes' })
  expect(output).toContain('Node, rank 0: 1000003 elements, 0 wrong')
  expect(output).toMatch(/Python, rank 1 \(ctypes, NCCL \d+\): 1000003 elements, 0 wrong/)
  expect(code).toBe(0)
})

test.each([
  ['/nowhere/python3', '/nowhere/python3 does not start'],
  ['false', 'Python ended with status 1'],
])('Node does not wait for a Python process that cannot join: %s', async (python, line) => {
  const { code, errors } = await run({ PYTHON: python })
  expect(errors).toContain(line)
  expect(code).toBe(2)
})

test('a single device is refused', async () => {
  const { code, errors } = await run({ SHOAL_SIM_DEVICES: '1' })
  expect(errors).toContain('this example needs two devices')
  expect(code).toBe(2)
})
