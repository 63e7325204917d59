import { inspect } from 'node:util'
import { Linker, type LinkOptions } from '@shoal/nvjitlink'
import { describe, expect, test } from 'vitest'
import { compileStub, moduleRunner } from '../../ffi/test/support/stub.js'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never
const runModule = moduleRunner(new URL('../', import.meta.url))
const linker = (): Linker => new Linker({ architecture: 'sm_90' })

describe('wrong arguments are refused by name, before nvJitLink is searched', () => {
  test.each([
    ['no options', () => new Linker(wrong(undefined)), TypeError, /^Linker: options must be a plain object/],
    ['no architecture', () => new Linker(wrong({})), TypeError, /^Linker: architecture must be a string/],
    ['an unknown option', () => new Linker(wrong({ architecture: 'sm_90', lto: true })), TypeError, /lto/],
    [
      'a level of 4',
      () => new Linker({ architecture: 'sm_90', optimizationLevel: 4 }),
      RangeError,
      /optimizationLevel/,
    ],
    [
      'a text for a switch',
      () => new Linker({ architecture: 'sm_90', ptx: wrong('x') }),
      TypeError,
      /^Linker: ptx must be a boolean/,
    ],
    ['an unknown kind', () => linker().add(wrong('elf'), 'x'), TypeError, /^Linker\.add: kind must be 'ptx'/],
    ['an inherited kind', () => linker().add(wrong('toString'), 'x'), TypeError, /^Linker\.add: kind must be 'ptx'/],
    ['text for a cubin', () => linker().add('cubin', 'x'), TypeError, /^Linker\.add: data must be a Uint8Array/],
    [
      'an array of numbers',
      () => linker().add('cubin', wrong([1])),
      TypeError,
      /^Linker\.add: data must be PTX text or a Uint8Array/,
    ],
    ['no bytes', () => linker().add('cubin', new Uint8Array(0)), RangeError, /^Linker\.add: data must not be empty/],
    ['PTX with NUL', () => linker().add('ptx', 'a\0b'), TypeError, /^Linker\.add: data must be a string without NUL/],
    ['a name that is no text', () => linker().add('ptx', 'x', { name: wrong(1) }), TypeError, /^Linker\.add: name /],
    ['an empty path', () => linker().addFile('ptx', ''), RangeError, /^Linker\.addFile: path /],
  ])('%s', (_what, call, kind, message) => {
    expect(call).toThrow(kind)
    expect(call).toThrow(message)
  })

  test('by a rejected promise of link()', async () => {
    await expect(linker().link()).rejects.toThrow(/^Linker\.link: at least one input must be added first/)
    const one = linker().add('ptx', 'x')
    await expect(one.link(wrong(5))).rejects.toThrow(/^Linker\.link: options must be a plain object/)
    await expect(one.link({ signal: wrong(1) })).rejects.toThrow('Linker.link: signal must be an AbortSignal, not 1')
    const error = await one.link({ signal: AbortSignal.abort('enough') }).catch((each: unknown) => each)
    expect(error).toMatchObject({ name: 'AbortedError', operation: 'Linker.link', cause: 'enough' })
  })
})

test('linker options become the flags of nvJitLink with raw ones last, and a linker prints one line', () => {
  const linker = new Linker({
    raw: ['-no-cache'],
    architecture: 'sm_90a',
    linkTimeOptimization: true,
    ptx: true,
    relocatable: false,
    optimizationLevel: 2,
    deviceDebug: true,
    lineInfo: true,
    ftz: true,
    precDiv: false,
    precSqrt: false,
    fma: false,
    maxRegisters: 64,
    kernelsUsed: ['a', 'b'],
    variablesUsed: ['v'],
    optimizeUnusedVariables: true,
    splitCompile: 2,
    splitCompileExtended: 0,
    jumpTableDensity: 5,
    verbose: true,
    time: true,
    ptxasOptions: ['-v'],
    nvvmOptions: ['-opt=2'],
  }).add('ptx', 'x')
  expect(linker.options.join(' ')).toBe(
    '-arch=sm_90a -lto -ptx -O2 -g -lineinfo -ftz=true -prec-div=false -prec-sqrt=false -fma=false -maxrregcount=64 -kernels-used=a ' +
      '-kernels-used=b -variables-used=v -optimize-unused-variables -split-compile=2 -split-compile-extended=0 -jump-table-density=5 ' +
      '-verbose -time -Xptxas=-v -Xnvvm=-opt=2 -no-cache',
  )
  expect(inspect(linker)).toBe("Linker { options: '-arch=sm_90a -lto -ptx -O2', inputs: 1 }")
})

test.each<[keyof LinkOptions, flag: string, lowest: number, highest: number]>([
  ['optimizationLevel', '-O', 0, 3],
  ['maxRegisters', '-maxrregcount=', 1, 255],
  ['splitCompile', '-split-compile=', 0, 1024],
  ['splitCompileExtended', '-split-compile-extended=', 0, 1024],
  ['jumpTableDensity', '-jump-table-density=', 0, 101],
])('%s is accepted up to its limits, and not beyond', (option, flag, lowest, highest) => {
  const given = (value: number): Linker => new Linker({ architecture: 'sm_90', [option]: value })
  for (const value of [lowest, highest]) expect(given(value).options).toEqual(['-arch=sm_90', `${flag}${value}`])
  for (const value of [lowest - 1, highest + 1]) {
    expect(() => given(value)).toThrow(new RegExp(`^Linker: ${option} must be .*${lowest}.*${highest}`))
    expect(() => given(value)).toThrow(RangeError)
  }
})

describe('linking with a recorded library', () => {
  // The test's library concatenates its inputs. An empty log has one byte, its NUL.
  const library = compileStub(
    'nvJitLink',
    `
    #include <stdio.h>
    static char linked[64]; static size_t length;
    int nvJitLinkVersion(unsigned* major, unsigned* minor) { *major = 13; *minor = 0; return 0; }
    int nvJitLinkCreate(void** handle, uint32_t count, const char** options) { *handle = linked; return 0; }
    int nvJitLinkDestroy(void** handle) { dprintf(1, "%s\\n", *handle == linked ? "destroyed" : "another"); *handle = 0; return 0; }
    int nvJitLinkAddData(void* handle, int type, const void* data, size_t size, const char* name) {
      memcpy(linked + length, data, size); length += size; return 0;
    }
    int nvJitLinkComplete(void* handle) { return linked[0] == 9 ? 6 : 0; }
    int nvJitLinkGetErrorLogSize(void* handle, size_t* size) { *size = linked[0] == 9 ? 4 : 8; return 0; }
    int nvJitLinkGetErrorLog(void* handle, char* log) {
      strcpy(log, linked[0] == 9 ? "why" : "garbage");
      return linked[0] == 9 ? 0 : 1;
    }
    int nvJitLinkGetInfoLogSize(void* handle, size_t* size) { *size = linked[0] == 1 ? 5 : 1; return 0; }
    int nvJitLinkGetInfoLog(void* handle, char* log) { strcpy(log, linked[0] == 1 ? "info" : ""); return 0; }
    int nvJitLinkGetLinkedCubinSize(void* handle, size_t* size) { *size = length; return 0; }
    int nvJitLinkGetLinkedCubin(void* handle, void* cubin) { memcpy(cubin, linked, length); return 0; }`,
  )

  /** Links bytes. Prints the result and the memory after it. */
  const link = (...inputs: readonly number[][]): unknown[] =>
    runModule(
      `import { NativeMemory } from '@shoal/ffi'
       import { Linker } from '@shoal/nvjitlink'
       const made = []
       const { allocate } = NativeMemory
       NativeMemory.allocate = (...given) => {
         const memory = allocate.apply(NativeMemory, given)
         made.push(memory)
         return memory
       }
       const linker = new Linker({ architecture: 'sm_90' })
       for (const input of ${JSON.stringify(inputs)}) linker.add('cubin', Uint8Array.from(input))
       const result = await linker.link().then(
         ({ cubin, log }) => ({ cubin: [...cubin], log }),
         ({ name, code, api, log }) => ({ name, code, api, log }))
       console.log(JSON.stringify({ ...result, left: made.length > 5 && made.filter(({ disposed }) => !disposed).length }))`,
      { SHOAL_NVJITLINK_LIBRARY: library },
    ).map((line) => (line.startsWith('{') ? JSON.parse(line) : line))

  test('returns the outputs of successful calls, and frees link and memory', () => {
    expect(link([1, 2], [3])).toEqual(['destroyed', { cubin: [1, 2, 3], log: 'info', left: 0 }])
  })

  test('returns empty text for an empty log', () => {
    expect(link([2])).toEqual(['destroyed', { cubin: [2], log: '', left: 0 }])
  })

  test('frees a failed link after reading its log', () => {
    const failed = { name: 'CompileError', code: 'NVJITLINK_ERROR_INTERNAL', api: 'nvJitLinkComplete', log: 'why' }
    expect(link([9])).toEqual(['destroyed', { ...failed, left: 0 }])
  })
})

test('without nvJitLink the error lists the attempted paths and a package to install', () => {
  const lines = runModule(
    `import { Linker } from '@shoal/nvjitlink'
     const error = await new Linker({ architecture: 'sm_90' }).add('ptx', 'x').link().catch((each) => each)
     console.log(JSON.stringify([error.name, error.attempts.length > 0, error.hint, error.environment]))`,
    { SHOAL_NVJITLINK_LIBRARY: '/nowhere/libnvJitLink.so.13' },
  )
  expect(JSON.parse(lines[0] as string)).toEqual([
    'LibraryNotFoundError',
    true,
    'install the CUDA toolkit or the Python wheel nvidia-nvjitlink',
    'SHOAL_NVJITLINK_LIBRARY',
  ])
})
