import { join } from 'node:path'
import { Program } from '@shoal/nvrtc'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { moduleRunner } from '../../ffi/test/support/stub.js'
import { fakeCompiler, noCCompiler } from './support/fakeCompiler.js'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never
const runModule = moduleRunner(new URL('../', import.meta.url))
const reason = noCCompiler()
const library = reason === undefined ? fakeCompiler() : ''
const scratch = scratchFolder()
let runs = 0

/** Runs a module with a compiler that takes a second, and counts the started compilations. */
function run(module: string): string[] {
  runs += 1
  const counter = join(scratch, `count${runs}`)
  return runModule(
    `import { existsSync, readFileSync } from 'node:fs'
     import { getEventListeners } from 'node:events'
     import { availableParallelism } from 'node:os'
     import { Program } from '@shoal/nvrtc'
     const begun = () => (existsSync('${counter}') ? readFileSync('${counter}').length : 0)
     const turn = () => new Promise((resolve) => setTimeout(resolve, 5))
     const errorOf = (promise) => promise.then(() => 'none', (error) => [error.name, error.operation, String(error.cause)].join(' '))
     ${module}`,
    {
      SHOAL_NVRTC_LIBRARY: library,
      SHOAL_CACHE_FOLDER: join(scratch, `cache${runs}`),
      FAKE_COUNT: counter,
      FAKE_SLEEP: '1000',
    },
  )
}

describe('a signal ends the wait for a compilation', () => {
  test('before it starts: nothing is compiled', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const lines = run(`
      console.log(await errorOf(new Program('a').compile({ signal: AbortSignal.abort('enough') })), begun())`)
    expect(lines).toEqual(['AbortedError Program.compile enough 0'])
  })

  test('after it started: the promise rejects while the compiler continues, and the result is cached', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const lines = run(`
      const { signal } = new AbortController()
      const controller = new AbortController()
      const first = new Program('a').compile({ signal: controller.signal })
      while (begun() === 0) await turn()
      controller.abort('enough')
      console.log(await errorOf(first))
      console.log((await new Program('b').compile({ signal })).origin, getEventListeners(signal, 'abort').length)
      let again = await new Program('a').compile()
      console.log(again.origin, begun())`)
    expect(lines).toEqual(['AbortedError Program.compile enough', 'compiler 0', 'memory 2'])
  })

  test('while it is queued: it never starts, and later ones do', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const lines = run(`
      const most = Math.max(1, availableParallelism() - 1)
      const first = Array.from({ length: most }, (_, index) => new Program('a' + index).compile())
      const controller = new AbortController()
      const aborted = new Program('b').compile({ signal: controller.signal })
      const last = new Program('c').compile()
      while (begun() < most) await turn()
      controller.abort('enough')
      console.log(await errorOf(aborted))
      await Promise.all([...first, last])
      console.log(begun() - most, (await last).ptx)`)
    expect(lines).toEqual(['AbortedError Program.compile enough', '1 c'])
  })

  test('that fails later: the error is ignored', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const lines = run(`
      const controller = new AbortController()
      const first = new Program('#error no').compile({ signal: controller.signal })
      while (begun() === 0) await turn()
      controller.abort('enough')
      console.log(await errorOf(first))
      console.log(await errorOf(new Program('#error no').compile()))`)
    expect(lines[0]).toBe('AbortedError Program.compile enough')
    expect(lines[1]).toMatch(/^CompileError /)
  })
})

test('other values than a signal are refused by name, and so is a signal for a synchronous call', async () => {
  const program = new Program('a')
  await expect(program.compile({ signal: wrong('now') })).rejects.toThrow(
    "Program.compile: signal must be an AbortSignal, not 'now'",
  )
  expect(() => program.compileSync(wrong({ signal: new AbortController().signal }))).toThrow(/compileSync.*signal/)
})

test('only asynchronous calls have a signal option (checked by tsc)', () => {
  expectTypeOf<NonNullable<Parameters<Program['compile']>[0]>>().toHaveProperty('signal')
  expectTypeOf<NonNullable<Parameters<Program['compileSync']>[0]>>().not.toHaveProperty('signal')
})
