import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const script = `
  import { Communicator } from '@shoal/nccl'
  // A signal that lives longer does not keep them.
  const lost = new AbortController()
  process.on('warning', (warning) => console.log(warning.name, warning.message))
  await (async () => {
    const [dropped, ended] = await Communicator.initAll([0, 1], { signal: lost.signal })
    await ended.ready()
    if (process.argv[1] === 'both') await dropped.destroy()
    await ended.destroy()
  })()
  for (let i = 0; i < 20; i += 1) {
    gc()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  lost.abort()
`

function run(which: 'one' | 'both', environment: NodeJS.ProcessEnv = {}): string {
  return execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', script, which], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: '2',
      NODE_OPTIONS: '',
      ...environment,
    },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

test('a communicator that is dropped is reported, not destroyed', () => {
  const output = run('one')
  expect(output).toContain('ShoalLeakWarning Communicator of rank 0 of 2 on device 0 was dropped')
  expect(output).not.toContain('rank 1')
})

test('one that was destroyed is not reported', () => {
  expect(run('both')).toBe('')
})

test('SHOAL_TRACE_LEAKS=1 says where it was made', () => {
  expect(run('one', { SHOAL_TRACE_LEAKS: '1' })).toMatch(/made at/)
})
