import { join } from 'node:path'
import { type Architecture, Program, pchHeapSize, setPchHeapSize } from '@shoal/nvrtc'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { moduleRunner } from '../../ffi/test/support/stub.js'
import { fakeCompiler, noCCompiler } from './support/fakeCompiler.js'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never
const runModule = moduleRunner(new URL('../', import.meta.url))
const reason = noCCompiler()
const library = reason === undefined ? fakeCompiler() : ''
const run = (module: string, environment: Record<string, string> = {}) =>
  runModule(module, {
    SHOAL_NVRTC_LIBRARY: library,
    SHOAL_CACHE_FOLDER: join(scratchFolder(), 'cache'),
    ...environment,
  })
const program = new Program('source')

describe('Program refuses wrong arguments by name, before NVRTC is searched', () => {
  test.each([
    ['no source', () => new Program(wrong(5)), TypeError, 'Program: source must be a string, not 5'],
    ['an empty source', () => new Program(''), RangeError, /^Program: source must be a string that is not empty/],
    ['a NUL in the source', () => new Program('a\0b'), TypeError, /^Program: source must be a string without NUL/],
    ['an unknown option', () => new Program('a', wrong({ header: {} })), TypeError, /header/],
    [
      'headers that are a list',
      () => new Program('a', { headers: wrong(['a.h']) }),
      TypeError,
      /^Program: headers must be a plain object/,
    ],
    [
      'a header that is no text',
      () => new Program('a', { headers: { 'a.h': wrong(1) } }),
      TypeError,
      /^Program: headers\.a\.h must be /,
    ],
    [
      'an expression that is no text',
      () => new Program('a', { nameExpressions: [wrong(1)] }),
      TypeError,
      /^Program: nameExpressions\[0\] /,
    ],
    [
      'one expression',
      () => new Program('a', { nameExpressions: wrong('k') }),
      TypeError,
      /^Program: nameExpressions must be an array/,
    ],
    [
      'a number for options',
      () => program.compileSync(wrong(5)),
      TypeError,
      /^Program\.compileSync: options must be a plain object/,
    ],
    ['an unknown option', () => program.compileSync(wrong({ arch: 'sm_90' })), TypeError, /arch/],
    [
      'a text for a switch',
      () => program.compileSync({ lineInfo: wrong('yes') }),
      TypeError,
      /^Program\.compileSync: lineInfo must be a boolean/,
    ],
    ['a fraction', () => program.compileSync({ maxRegisters: 1.5 }), TypeError, /maxRegisters/],
    [
      'too many registers',
      () => program.compileSync({ maxRegisters: 256 }),
      RangeError,
      /maxRegisters must be an integer from 1 to 255/,
    ],
    [
      'an unknown standard',
      () => program.compileSync({ standard: wrong('c++23') }),
      TypeError,
      /standard must be 'c\+\+03'/,
    ],
    [
      'an invalid macro',
      () => program.compileSync({ defines: { '1A': 1 } }),
      RangeError,
      /defines must be macros by their names/,
    ],
    [
      'a macro of an object',
      () => program.compileSync({ defines: { A: wrong({}) } }),
      TypeError,
      /defines\.A must be /,
    ],
    [
      'macros as a list',
      () => program.compileSync({ defines: wrong(['A']) }),
      TypeError,
      /defines must be a plain object/,
    ],
    [
      'a folder that is a number',
      () => program.compileSync({ includeFolders: [wrong(1)] }),
      TypeError,
      /includeFolders\[0\]/,
    ],
    [
      'a number of a message below 1',
      () => program.compileSync({ diagnosticSuppress: [0] }),
      RangeError,
      /diagnosticSuppress\[0\]/,
    ],
    ['a cache that is a number', () => program.compileSync({ cache: wrong(1) }), TypeError, /cache must be a string/],
    [
      'a folder of the cache that is not absolute',
      () => program.compileSync({ cache: 'here' }),
      RangeError,
      /cache must be a boolean or an absolute path/,
    ],
    ['a heap below zero', () => setPchHeapSize(-1), RangeError, /^setPchHeapSize: byteLength /],
  ])('%s', (_what, call, kind, message) => {
    expect(call).toThrow(kind)
    expect(call).toThrow(message)
  })

  test('by a rejected promise of compile(), which does not throw', async () => {
    await expect(program.compile({ lineInfo: wrong(1) })).rejects.toThrow(
      /^Program\.compile: lineInfo must be a boolean/,
    )
  })

  test('by types of options and architectures (checked by tsc)', () => {
    expectTypeOf<'sm_90a'>().toExtend<Architecture>()
    expectTypeOf<'compute_100'>().toExtend<Architecture>()
    // @ts-expect-error this option does not exist
    expect(() => program.compileSync({ nonsense: true })).toThrow(TypeError)
    // @ts-expect-error this is not an architecture
    void (() => program.compileSync({ architecture: 'hopper' }))
    expectTypeOf(pchHeapSize).returns.toEqualTypeOf<number>()
  })
})

test('every option becomes its NVRTC flag, with raw options last', ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const lines = run(`import { Program } from '@shoal/nvrtc'
    const { log } = new Program('source').compileSync({
      raw: ['--uumn'], architecture: 'sm_90a', relocatableDeviceCode: true, extensibleWholeProgram: true, deviceDebug: true, lineInfo: true,
      optimizeDebug: true, fastCompile: 'min', ptxasOptions: ['-v', '-O1'], maxRegisters: 32, ftz: true, precSqrt: false, precDiv: false, fmad: false,
      useFastMath: true, extraDeviceVectorization: true, modifyStackLimit: false, linkTimeOptimization: true, genOptLto: true, optixIr: true,
      jumpTableDensity: 101, deviceStackProtector: false, randomSeed: 'a', defines: { A: 1, B: true, C: false, D: 'x y', E: 2n, 'F(x)': 'x' },
      undefines: ['G'], includeFolders: ['/a', '/b'], preIncludes: ['c.h'], noSourceInclude: true, standard: 'c++20', builtinMoveForward: false,
      builtinInitializerList: false, pch: true, createPch: 'p', usePch: 'q', pchFolder: '/p', pchVerbose: true, pchMessages: false,
      instantiateTemplatesInPch: true, disableWarnings: true, restrict: true, deviceAsDefaultExecutionSpace: true, deviceInt128: true,
      deviceFloat128: true, optimizationInfo: 'inline', displayErrorNumber: false, diagnosticErrors: [1, 2], diagnosticSuppress: [3],
      diagnosticWarnings: [], briefDiagnostics: true, timeFile: 't', timeTraceFile: 'u', splitCompile: 0, syntaxOnly: true, minimal: false,
    })
    console.log(log)`)
  expect(lines).toEqual([
    '--gpu-architecture=sm_90a',
    '--relocatable-device-code=true',
    '--extensible-whole-program',
    '--device-debug',
    '--generate-line-info',
    '--dopt=on',
    '--Ofast-compile=min',
    '--ptxas-options=-v',
    '--ptxas-options=-O1',
    '--maxrregcount=32',
    '--ftz=true',
    '--prec-sqrt=false',
    '--prec-div=false',
    '--fmad=false',
    '--use_fast_math',
    '--extra-device-vectorization',
    '--modify-stack-limit=false',
    '--dlink-time-opt',
    '--gen-opt-lto',
    '--optix-ir',
    '--jump-table-density=101',
    '--device-stack-protector=false',
    '--frandom-seed=a',
    '--define-macro=A=1',
    '--define-macro=B',
    '--define-macro=D=x y',
    '--define-macro=E=2',
    '--define-macro=F(x)=x',
    '--undefine-macro=G',
    '--include-path=/a',
    '--include-path=/b',
    '--pre-include=c.h',
    '--no-source-include',
    '--std=c++20',
    '--builtin-move-forward=false',
    '--builtin-initializer-list=false',
    '--pch',
    '--create-pch=p',
    '--use-pch=q',
    '--pch-dir=/p',
    '--pch-verbose=true',
    '--pch-messages=false',
    '--instantiate-templates-in-pch=true',
    '--disable-warnings',
    '--restrict',
    '--device-as-default-execution-space',
    '--device-int128',
    '--device-float128',
    '--optimization-info=inline',
    '--no-display-error-number',
    '--diag-error=1,2',
    '--diag-suppress=3',
    '--brief-diagnostics=true',
    '--time=t',
    '--fdevice-time-trace=u',
    '--split-compile=0',
    '--fdevice-syntax-only',
    '--uumn',
  ])
})

test('a Program compiles off and on the thread, with its names, and prints one line', ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const lines = run(`import { Program } from '@shoal/nvrtc'
    const program = new Program('källkod', { nameExpressions: ['f<int>', '&t', 'f<int>'] })
    const [one, two] = [await program.compile({ cache: false }), program.compileSync({ cache: false })]
    console.log(JSON.stringify([one.ptx, two.ptx, one.image, one.cubin === undefined, one.lowered('f<int>'), two.lowered('&t'), one.origin]))
    console.log(program)
    console.log(one)
    try { one.lowered('g') } catch (error) { console.log(error.name, error.message) }`)
  expect(JSON.parse(lines[0] as string)).toEqual([
    'källkod',
    'källkod',
    'källkod',
    true,
    'lowered_f<int>',
    'lowered_&t',
    'compiler',
  ])
  expect(lines.slice(1)).toEqual([
    "Program { name: 'program.cu', characters: 7 }",
    "Compiled { name: 'program.cu', has: 'ptx', origin: 'compiler' }",
    "RangeError Compiled.lowered: expression must be one of the nameExpressions of the program ('f<int>', '&t'), not 'g'",
  ])
})

test('without NVRTC the error lists the attempted paths and a package to install', () => {
  const lines = runModule(
    `import { Program } from '@shoal/nvrtc'
     const error = await new Program('a').compile().catch((each) => each)
     console.log(JSON.stringify([error.name, error.attempts.length > 0, error.hint, error.environment]))`,
    { SHOAL_NVRTC_LIBRARY: '/nowhere/libnvrtc.so.13' },
  )
  expect(JSON.parse(lines[0] as string)).toEqual([
    'LibraryNotFoundError',
    true,
    'install the CUDA toolkit or the Python wheel nvidia-cuda-nvrtc',
    'SHOAL_NVRTC_LIBRARY',
  ])
})

test('importing @shoal/nvrtc loads no library', () => {
  const lines = runModule(
    `import '@shoal/nvrtc'
     import { nvrtc } from '@shoal/nvrtc-sys'
     console.log(nvrtc.isLoaded)`,
    { SHOAL_NVRTC_LIBRARY: '/nowhere/libnvrtc.so.13' },
  )
  expect(lines).toEqual(['false'])
})

test('an option with alternative words lists them in its error', ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const lines = run(
    `import { Program } from '@shoal/nvrtc'
     for (const displayErrorNumber of [true, false]) console.log(new Program('a').compileSync({ displayErrorNumber }).log)`,
  )
  expect(lines).toEqual(['--display-error-number', '--no-display-error-number'])
})

test('the heap of precompiled headers has the configured size, and a compilation reports the missing size', ({
  skip,
}) => {
  if (reason !== undefined) return skip(reason)
  const [line] = run(
    `import { nvrtcVersion, pchHeapSize, Program, setPchHeapSize } from '@shoal/nvrtc'
     const failure = (fn) => { try { return fn() } catch (error) { return [error.api, error.status] } }
     const first = pchHeapSize()
     const required = []
     for (const size of [1000, 150, 50]) {
       setPchHeapSize(size)
       if (pchHeapSize() !== size) throw new Error('another size')
       for (const nameExpressions of [[], ['f', 'g']]) {
         const options = { cache: false, pch: true }
         const made = new Program('a' + size, { nameExpressions }).compileSync(options)
         required.push([made.pchHeapRequired ?? 'none', nameExpressions.map((name) => made.lowered(name)).join()])
       }
     }
     const without = new Program('b').compileSync({ cache: false }).pchHeapRequired ?? 'none'
     setPchHeapSize(5)
     const failures = [failure(() => pchHeapSize()), failure(() => setPchHeapSize(7))]
     console.log(JSON.stringify({ version: nvrtcVersion(), first, required, without, failures }))`,
  )
  const names = 'lowered_f,lowered_g'
  expect(JSON.parse(line as string)).toEqual({
    version: '13.0',
    first: 1024,
    required: [
      ['none', ''],
      ['none', names],
      [4096, ''],
      [4096, names],
      ['none', ''],
      ['none', names],
    ],
    without: 'none',
    failures: [
      ['nvrtcGetPCHHeapSize', 1],
      ['nvrtcSetPCHHeapSize', 1],
    ],
  })
})
