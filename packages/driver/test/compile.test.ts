import { join } from 'node:path'
import { Device, Module } from '@shoal/driver'
import { compile, compileSync, Program } from '@shoal/driver/compile'
import { loadedFrom } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { moduleRunner } from '../../ffi/test/support/stub.js'
import { fakeCompiler, noCCompiler } from '../../nvrtc/test/support/fakeCompiler.js'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never
const runModule = moduleRunner(new URL('../', import.meta.url))
process.env['SHOAL_DEVICE'] = 'sim'
const device = Device.get(0)
const scratch = scratchFolder()
/** The class as another copy of the package defines it. */
const otherCopies = {
  Program: class Program {
    static readonly [loadedFrom] = 'file:///other.js'
    readonly source = 'a'
  },
}

test.each([
  ['no owner', () => compileSync(wrong(0), 'a'), TypeError, /^compileSync: owner/],
  ['no source', () => compileSync(device, wrong(5)), TypeError, /^compileSync: source must be a string/],
  [
    'a Program of another copy of the package',
    () => compileSync(device, wrong(new otherCopies.Program())),
    TypeError,
    /^compileSync: source must be a Program of the copy .*, not of the copy at file:\/\/\/other\.js\. Two copies of the package/,
  ],
  ['an empty source', () => compileSync(device, ''), RangeError, /^compileSync: source /],
  [
    'a number for options',
    () => compileSync(device, 'a', wrong(5)),
    TypeError,
    /^compileSync: options must be a plain object/,
  ],
  [
    'headers together with a Program',
    () => compileSync(device, new Program('a'), { headers: {} }),
    TypeError,
    /^compileSync: headers must be left out/,
  ],
  [
    'LTO-IR',
    () => compileSync(device, 'a', wrong({ linkTimeOptimization: true })),
    TypeError,
    /^compileSync: options must have only the keys .*, not 'linkTimeOptimization'/,
  ],
  [
    'a header that is no text',
    () => compileSync(device, 'a', { headers: { h: wrong(1) } }),
    TypeError,
    /^compileSync: headers\.h must be a string/,
  ],
])('compile() refuses %s by name', (_what, call, kind, message) => {
  expect(call).toThrow(kind)
  expect(call).toThrow(message)
})

test('compile() with wrong arguments rejects instead of throwing', async () => {
  await expect(compile(device, wrong(5))).rejects.toThrow(/^compile: source must be a string/)
})

test('without NVRTC the error lists the attempted paths and does not suggest the software device', () => {
  const lines = runModule(
    `import { Device, Module } from '@shoal/driver'
     import { compile } from '@shoal/driver/compile'
     const error = await compile(Device.get(0), 'a').catch((each) => each)
     console.log(JSON.stringify([error.name, error.attempts.length > 0, /nvidia-cuda-nvrtc/.test(error.message), /@shoal.sim/.test(error.message)]))`,
    { SHOAL_DEVICE: 'sim', SHOAL_NVRTC_LIBRARY: '/nowhere/libnvrtc.so.13' },
  )
  expect(JSON.parse(lines[0] as string)).toEqual(['LibraryNotFoundError', true, true, false])
})

test('importing the main entry loads no compiler', () => {
  const lines = runModule(
    `import '@shoal/driver'
     import { definedLibraries } from '@shoal/ffi'
     console.log(definedLibraries().map(({ id }) => id).join())`,
  )
  expect(lines[0]).not.toContain('nvrtc')
})

test('a kernel without a signature names the missing types and the parameter sizes', () => {
  const ptx = `.version 7.0
    .target sm_70
    .address_size 64
    .visible .entry axpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n, .param .align 4 .b8 s[12]) { ret; }
    .visible .entry none() { ret; }`
  using module = Module.loadSync(device, ptx)
  expect(() => module.kernel('axpy', wrong(undefined))).toThrow(
    'Module.kernel: signature must be an array with the type of each parameter of axpy (of 4, 8, 8, 4, 12 bytes), not undefined',
  )
  expect(() => module.kernel('none', wrong(undefined))).toThrow(/^Module\.kernel: signature must be an array/)
})

const reason = noCCompiler()
const ptx = `.version 7.0
    .target sm_70
    .address_size 64
    .visible .entry k() { ret; }`

test.for(['', '120', '60'])(
  'compiles for the newest architecture that NVRTC and the device know (NVRTC knows 75, 80, 90 and %j)',
  (newest, { skip }) => {
    if (reason !== undefined) return skip(reason)
    // The test's replacement of NVRTC writes its options to its log.
    const lines = runModule(
      `import { Device } from '@shoal/driver'
       import { compile, compileSync } from '@shoal/driver/compile'
       const device = Device.get(0)
       const source = ${JSON.stringify(ptx)}
       const architectureOf = (module) => /--gpu-architecture=\\S+/.exec(module.compilerLog)?.[0]
       console.log(device.computeCapability.major, architectureOf(compileSync(device, source)), architectureOf(await compile(device, source)))`,
      {
        SHOAL_DEVICE: 'sim',
        SHOAL_NVRTC_LIBRARY: fakeCompiler(),
        SHOAL_CACHE_FOLDER: join(scratch, `cache${newest}`),
        ...(newest === '' ? {} : { FAKE_NEWEST: newest }),
      },
    )
    expect(lines).toEqual(['9 --gpu-architecture=compute_90 --gpu-architecture=compute_90'])
  },
)

describe('the signal of compile()', () => {
  test('ends the wait; the result compiled later is loaded for no caller and cached for the next', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const folder = scratch
    const counter = join(folder, 'count')
    // The test's replacement of NVRTC returns its source.
    const lines = runModule(
      `import { existsSync } from 'node:fs'
       import { Device } from '@shoal/driver'
       import { compile } from '@shoal/driver/compile'
       const source = ${JSON.stringify(ptx)}
       const device = Device.get(0)
       const errorOf = (promise) => promise.then(() => 'none', (error) => [error.name, error.operation, String(error.cause)].join(' '))
       console.log(await errorOf(compile(device, source, { signal: AbortSignal.abort('early') })), existsSync('${counter}'))
       const controller = new AbortController()
       const first = compile(device, source, { signal: controller.signal })
       while (!existsSync('${counter}')) await new Promise((resolve) => setTimeout(resolve, 5))
       controller.abort('late')
       console.log(await errorOf(first))
       const module = await compile(device, source, { signal: new AbortController().signal })
       console.log(module.kernelNames.join())
       module.dispose()`,
      {
        SHOAL_DEVICE: 'sim',
        SHOAL_NVRTC_LIBRARY: fakeCompiler(),
        SHOAL_CACHE_FOLDER: join(folder, 'cache'),
        FAKE_COUNT: counter,
        FAKE_SLEEP: '500',
      },
    )
    expect(lines).toEqual(['AbortedError compile early false', 'AbortedError compile late', 'k'])
  })

  test('that fires while the driver loads the code disposes the module', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const lines = runModule(
      `import { Device, Module } from '@shoal/driver'
       import { compile } from '@shoal/driver/compile'
       const controller = new AbortController()
       const load = Module._loadCompiled
       let late
       Module._loadCompiled = async (...given) => {
         controller.abort('late')
         return (late = await load.apply(Module, given))
       }
       await compile(Device.get(0), ${JSON.stringify(ptx)}, { signal: controller.signal }).catch((error) => console.log(error.name))
       for (let turn = 0; turn < 1000 && late?.disposed !== true; turn += 1) await new Promise((resolve) => setTimeout(resolve, 5))
       console.log(late.disposed)`,
      {
        SHOAL_DEVICE: 'sim',
        SHOAL_NVRTC_LIBRARY: fakeCompiler(),
        SHOAL_CACHE_FOLDER: join(scratch, 'late'),
      },
    )
    expect(lines).toEqual(['AbortedError', 'true'])
  })

  test('must be an AbortSignal, and compileSync refuses one', async () => {
    await expect(compile(device, 'a', { signal: wrong(5) })).rejects.toThrow(
      'compile: signal must be an AbortSignal, not 5',
    )
    expect(() => compileSync(device, 'a', wrong({ signal: new AbortController().signal }))).toThrow(
      /^compileSync: options must have only the keys .*, not 'signal'/,
    )
  })
})
