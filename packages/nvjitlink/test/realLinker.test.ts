import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type InputKind, Linker, type LinkOptions, nvjitlinkVersion } from '@shoal/nvjitlink'
import { nvjitlink } from '@shoal/nvjitlink-sys'
import { Program } from '@shoal/nvrtc'
import { CompileError } from '@shoal/nvrtc/basics'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

function missing(): string | undefined {
  try {
    nvjitlink.load()
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnvJitLink on this machine: set SHOAL_NVJITLINK_LIBRARY'
    throw error
  }
  try {
    new Program('__device__ int x;').compileSync({ cache: false })
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnvrtc on this machine: set SHOAL_NVRTC_LIBRARY'
    throw error
  }
}

const reason = missing()
const folder = scratchFolder()
const kernel = new Program(
  'extern __device__ float half_of(float); extern "C" __global__ void k(float* x) { *x = half_of(*x); }',
  {
    name: 'kernel.cu',
  },
)
const helper = new Program('__device__ float half_of(float x) { return x / 2; }', { name: 'helper.cu' })
const options = { cache: false, architecture: 'sm_90', relocatableDeviceCode: true } as const

const parts = () => [kernel, helper].map((program) => program.compileSync(options))
const lto = () => [kernel, helper].map((program) => program.compileSync({ ...options, linkTimeOptimization: true }))
const linker = (more: Partial<LinkOptions> = {}): Linker => new Linker({ architecture: 'sm_90', ...more })
const cutOff = (bytes: Uint8Array | undefined): Uint8Array => (bytes ?? new Uint8Array(1)).slice(0, 300)
const isCubin = (bytes: Uint8Array | undefined): boolean =>
  Buffer.from(bytes ?? []).toString('latin1', 0, 4) === '\x7fELF'

describe('the real nvJitLink', () => {
  test('links PTX, cubins, and both', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [a, b] = parts() as [ReturnType<typeof kernel.compileSync>, ReturnType<typeof kernel.compileSync>]
    const ptx = await linker()
      .add('ptx', a.ptx as string)
      .add('ptx', b.ptx as string)
      .link()
    expect([isCubin(ptx.cubin), ptx.ptx, ptx.ltoIr, ptx.log]).toEqual([true, undefined, undefined, ''])
    expect(ptx.image).toBe(ptx.cubin)
    for (const [kind, first] of [
      ['cubin', a.cubin],
      ['any', a.ptx],
    ] as const) {
      const link = linker().add(kind, first as Uint8Array | string)
      expect(isCubin((await link.add('cubin', b.cubin as Uint8Array).link()).cubin)).toBe(true)
    }
  })

  test('optimises LTO-IR across its inputs, into a cubin, PTX, or linkable output', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [a, b] = lto().map(({ ltoIr }) => ltoIr as Uint8Array) as [Uint8Array, Uint8Array]
    const all = (more: Partial<LinkOptions>) =>
      linker({ linkTimeOptimization: true, ...more })
        .add('ltoIr', a)
        .add('ltoIr', b)
    expect(isCubin((await all({}).link()).cubin)).toBe(true)
    const { ptx, cubin, image } = await all({ ptx: true }).link()
    // The helper was inlined into the kernel.
    expect(ptx).toMatch(/\.visible \.entry k\(/)
    expect(ptx).not.toContain('call')
    expect([cubin, image]).toEqual([undefined, ptx])
    expect(isCubin((await all({ relocatable: true }).link()).cubin)).toBe(true)
    if (Number(nvjitlinkVersion().split('.')[0]) >= 13)
      expect((await all({}).link()).ltoIr?.length).toBeGreaterThan(100)
  })

  test('reads input files', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const files = parts().map(({ ptx }, index) => {
      const file = join(folder, `part${index}.ptx`)
      writeFileSync(file, ptx as string)
      return file
    })
    const link = linker()
    for (const file of files) link.addFile('ptx', file)
    expect(isCubin((await link.link()).cubin)).toBe(true)
  })

  test('writes the requested information to its log', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [a, b] = parts().map(({ cubin }) => cubin as Uint8Array) as [Uint8Array, Uint8Array]
    const { log, diagnostics } = await linker({ verbose: true, ptxasOptions: ['-v'] })
      .add('cubin', a)
      .add('cubin', b)
      .link()
    expect(log).toContain('registers')
    expect(diagnostics).toContainEqual({ severity: 'info', message: expect.stringContaining('registers') })
  })

  test.for<[string, LinkOptions, (link: Linker) => Linker, string, RegExp]>([
    [
      'an undefined function',
      { architecture: 'sm_90' },
      (link) => link.add('ptx', parts()[0]?.ptx as string, { name: 'a.ptx' }),
      'NVJITLINK_ERROR_INTERNAL',
      /Undefined reference to '_Z7half_off' in 'a\.ptx'/,
    ],
    [
      'LTO-IR without the option',
      { architecture: 'sm_90' },
      (link) => link.add('ltoIr', lto()[0]?.ltoIr as Uint8Array),
      'NVJITLINK_ERROR_LTO_NOT_ENABLED',
      /LTO/,
    ],
    [
      'a cubin of another architecture',
      { architecture: 'sm_80' },
      (link) => link.add('cubin', parts()[0]?.cubin as Uint8Array, { name: 'a.cubin' }),
      'NVJITLINK_ERROR_INVALID_INPUT',
      /a\.cubin/,
    ],
    ['malformed PTX', { architecture: 'sm_90' }, (link) => link.add('ptx', 'nonsense'), '', /./],
    ['bytes that are no cubin', { architecture: 'sm_90' }, (link) => link.add('cubin', new Uint8Array(100)), '', /./],
    [
      'a cubin that is cut off',
      { architecture: 'sm_90' },
      (link) => link.add('cubin', cutOff(parts()[0]?.cubin)),
      '',
      /./,
    ],
    [
      'malformed LTO-IR',
      { architecture: 'sm_90', linkTimeOptimization: true },
      (link) => link.add('ltoIr', new Uint8Array(100)),
      '',
      /./,
    ],
    ['a file that is not there', { architecture: 'sm_90' }, (link) => link.addFile('ptx', '/nowhere/a.ptx'), '', /./],
    [
      'an architecture that there is not',
      { architecture: 'sm_20' },
      (link) => link.add('ptx', 'x'),
      'NVJITLINK_ERROR_UNSUPPORTED_ARCH',
      /compute_20/,
    ],
    [
      'an option that there is not',
      { architecture: 'sm_90', raw: ['-nonsense'] },
      (link) => link.add('ptx', 'x'),
      'NVJITLINK_ERROR_UNRECOGNIZED_OPTION',
      /unrecognized option: -nonsense/,
    ],
  ])('refuses %s with a reason', async ([_what, given, add, code, message], { skip }) => {
    if (reason !== undefined) return skip(reason)
    for (let round = 0; round < 2; round++) {
      const error = await add(new Linker(given))
        .link()
        .then(
          () => undefined,
          (each: unknown) => each,
        )
      expect(error).toBeInstanceOf(CompileError)
      const told = error as CompileError
      expect(told.code).toMatch(code === '' ? /^NVJITLINK_ERROR_/ : new RegExp(`^${code}$`))
      expect(told.message).toMatch(message)
      expect(told.library).toBe('NVIDIA nvJitLink')
    }
  })

  test('has typed input kinds (checked by tsc)', () => {
    const kinds: readonly InputKind[] = ['ptx', 'cubin', 'fatbin', 'object', 'library', 'ltoIr', 'index', 'any']
    for (const kind of kinds) expect(() => linker().add(kind, new Uint8Array(1))).not.toThrow()
  })
})
