import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const script = `
  import { Session, UniqueId } from '@shoal/nvshmem'
  process.on('warning', (warning) => console.log(warning.name, warning.message))
  const id = UniqueId.create()
  const session = await Session.init({ device: 0, rank: 0, worldSize: 1, id })
  const isTidy = process.argv[1] === 'tidy'
  await (async () => {
    const buffer = await session.allocate('f32', 8)
    const team = await session.world.splitStrided({ start: 0, size: 1 })
    if (!isTidy) return
    await buffer.dispose()
    await team.dispose()
  })()
  for (let i = 0; i < 20; i += 1) {
    gc()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await session.barrierAll()
  if (isTidy) await (async () => void (await session.allocate('f32', 8)))()
  await session.finalize()
  for (let i = 0; i < 5; i += 1) {
    gc()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
`

function run(which: 'tidy' | 'untidy', environment: NodeJS.ProcessEnv = {}): string {
  return execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', script, which], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: '1',
      NODE_OPTIONS: '',
      ...environment,
    },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

test('dropped memory and teams are reported but not freed, and the session stays usable', () => {
  const output = run('untidy')
  expect(output).toContain('ShoalLeakWarning Symmetric memory of PE 0 (32 bytes) was dropped without dispose()')
  expect(output).toContain('ShoalLeakWarning Team world[0, step 1, 1] of PE 0 was dropped')
})

test('objects that were disposed or ended with the session are not reported', () => {
  expect(run('tidy')).toBe('')
})

test('SHOAL_TRACE_LEAKS=1 adds the place where the object was made', () => {
  expect(run('untidy', { SHOAL_TRACE_LEAKS: '1' })).toMatch(/made at/)
})
