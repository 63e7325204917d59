import { join } from 'node:path'
import { CompileError } from '@shoal/nvrtc'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { moduleRunner } from '../../ffi/test/support/stub.js'
import { fakeCompiler, noCCompiler } from './support/fakeCompiler.js'

const runModule = moduleRunner(new URL('../', import.meta.url))
const reason = noCCompiler()
const library = reason === undefined ? fakeCompiler() : ''
const run = (module: string) =>
  runModule(module, { SHOAL_NVRTC_LIBRARY: library, SHOAL_CACHE_FOLDER: join(scratchFolder(), 'cache') })
const facts = {
  library: 'NVRTC',
  api: 'nvrtcCompileProgram',
  status: 6,
  code: 'NVRTC_ERROR_COMPILATION',
  description: 'told',
}
const describeLog = (log: string): string => new CompileError({ ...facts, log }).description

test('compile() and compileSync() throw a CompileError with messages and line for a wrong source', ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const lines = run(`import { CompileError, Program } from '@shoal/nvrtc'
    import { StatusError } from '@shoal/types'
    const program = new Program('#error no')
    for (const compile of [() => program.compile(), async () => program.compileSync()]) {
      const error = await compile().catch((each) => each)
      console.log(JSON.stringify([error instanceof CompileError, error instanceof StatusError, error.name, error.code, error.status, error.api]))
      console.log(JSON.stringify(error.diagnostics))
      console.log(JSON.stringify(error.message))
    }`)
  expect(lines).toHaveLength(6)
  expect(lines.slice(3)).toEqual(lines.slice(0, 3))
  const [kind, diagnostics, message] = lines.slice(0, 3).map((line) => JSON.parse(line))
  expect(kind).toEqual([true, true, 'CompileError', 'NVRTC_ERROR_COMPILATION', 6, 'nvrtcCompileProgram'])
  expect(diagnostics).toEqual([
    { severity: 'error', message: '#error directive: no', file: 'program.cu', line: 1, column: 2, text: '#error no' },
  ])
  expect(message).toBe(
    'nvrtcCompileProgram failed: NVRTC_ERROR_COMPILATION (6): program.cu:1:2: error: #error directive: no\n  #error no\n   ^',
  )
})

test('CompileError prints the first error, the number of others, and a caret below tabs', () => {
  const one = 'k.cu(2): warning #1-D: w\n  a\n  ^\n\nk.cu(3): error: e\n  \tx = y;\n  \t    ^\n\n'
  expect(describeLog(one)).toBe('k.cu:3:6: error: e\n  \tx = y;\n  \t    ^')
  expect(describeLog(`${one}k.cu(4): error: f\n`)).toMatch(/\^\n\(and 1 more error; diagnostics has all\)$/)
  expect(describeLog(one.repeat(3))).toMatch(/\(and 2 more errors; diagnostics has all\)$/)
})

test("CompileError prints the log if it has no error, and the library's message without a log", () => {
  expect(describeLog('one\ntwo\nthree\nfour\nfive\n')).toBe('one\ntwo\nthree\nfour')
  expect(describeLog(' \n')).toBe('told')
})

test('CompileError serializes to JSON with its log and its messages', () => {
  const json = JSON.parse(JSON.stringify(new CompileError({ ...facts, log: 'nvrtc: error: no\n' })))
  expect(json).toMatchObject({
    name: 'CompileError',
    code: 'NVRTC_ERROR_COMPILATION',
    log: 'nvrtc: error: no\n',
    diagnostics: [{ message: 'no' }],
  })
})
