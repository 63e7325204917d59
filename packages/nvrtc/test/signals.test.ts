import { spawnSync } from 'node:child_process'
import { beforeEach, expect, test } from 'vitest'
import { fakeCompiler, noCCompiler } from './support/fakeCompiler.js'

// The test's replacement of NVRTC changes signal handlers like NVRTC 13.0.
const reason = noCCompiler()
const library = reason === undefined ? fakeCompiler('nvrtcWithHandlers') : ''

beforeEach((context) => {
  if (reason !== undefined) context.skip(reason)
})

/** Returns how a process ends that receives `signal` after `module` has run. */
function endOf(module: string, signal: string): NodeJS.Signals | number | null {
  const source = `
    import { Program } from '@shoal/nvrtc'
    const program = new Program('x' + Math.random())
    ${module}
    process.kill(process.pid, '${signal}')
    setTimeout(() => undefined, 60_000)`
  const ended = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    cwd: new URL('../', import.meta.url),
    env: { ...process.env, SHOAL_NVRTC_LIBRARY: library },
    timeout: 30_000,
    killSignal: 'SIGKILL',
  })
  return ended.signal ?? ended.status
}

test.each(['SIGTERM', 'SIGINT'])('a process that has compiled can be ended by %s', (signal) => {
  expect(endOf('program.compileSync({ cache: false })', signal)).toBe(signal)
  expect(endOf('await program.compile({ cache: false })', signal)).toBe(signal)
})

test('a signal handler that the program installed meanwhile is kept', () => {
  const module = `
    const compiled = program.compile({ cache: false })
    process.on('SIGTERM', () => process.exit(7))
    await compiled`
  expect(endOf(module, 'SIGTERM')).toBe(7)
})
