import { join } from 'node:path'
import { Device, type KernelSignature } from '@shoal/driver'
import { CompileError, compile, type ModuleCompileOptions } from '@shoal/driver/compile'
import { supportedArchitectures } from '@shoal/nvrtc'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

function missing(): string | undefined {
  try {
    supportedArchitectures()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnvrtc on this machine: set SHOAL_NVRTC_LIBRARY'
    throw error
  }
}

const reason = missing()
// The conformance suite runs the compiled code.
process.env['SHOAL_DEVICE'] ??= 'sim'
process.env['SHOAL_CACHE_FOLDER'] = join(scratchFolder(), 'cache')

const kernel = (body: string): string => `extern "C" __global__ void k(float* x) { int i = threadIdx.x; ${body} }`

describe('compile errors and limits with the real NVRTC', () => {
  test.for<readonly [string, string, ModuleCompileOptions, RegExp, number]>([
    ['an unknown name', kernel('x[i] = y;'), {}, /k\.cu:1:\d+: error: identifier "y" is undefined/, 1],
    [
      'a header that is not there',
      '#include <nope.h>\n',
      {},
      /k\.cu:1:\d+: error: (could not|cannot) open source file "nope.h"/,
      1,
    ],
    [
      'an unknown option',
      kernel(''),
      { raw: ['--nonsense'] },
      /NVRTC_ERROR_INVALID_OPTION .*unrecognized option --nonsense/,
      1,
    ],
    [
      'an unknown architecture',
      kernel(''),
      { architecture: 'compute_12345' },
      /invalid value for --gpu-architecture/,
      1,
    ],
    [
      'options that contradict each other',
      kernel(''),
      { extensibleWholeProgram: true, relocatableDeviceCode: true },
      /not compatible/,
      1,
    ],
    [
      'a malformed name expression',
      kernel(''),
      { nameExpressions: ['nothing<int>'] },
      /identifier "nothing" is undefined/,
      2,
    ],
    [
      'a hundred thousand errors',
      `${kernel('')}\n${'error here;\n'.repeat(100_000)}`,
      {},
      /\(and \d+ more errors; diagnostics has all\)/,
      50,
    ],
  ])('%s: the error has the source position', async ([_what, source, options, message, fewest], { skip }) => {
    if (reason !== undefined) return skip(reason)
    const error = await compile(Device.get(0), source, { name: 'k.cu', cache: false, ...options }).catch(
      (each: unknown) => each,
    )
    expect(error).toBeInstanceOf(CompileError)
    expect((error as CompileError).message).toMatch(message)
    expect((error as CompileError).diagnostics.length).toBeGreaterThanOrEqual(fewest)
  })

  test('ten megabytes of source compile', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const module = await compile(Device.get(0), `${'// comment\n'.repeat(1_000_000)}${kernel('x[i] = 1;')}`, {
      cache: false,
    })
    expect(module.kernel('k', ['ptr']).name).toBe('k')
    module.dispose()
  })

  test('code for an architecture that the device lacks is refused', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const device = Device.get(0)
    const [oldest] = supportedArchitectures()
    const options = { architecture: `sm_${oldest as number}`, cache: false } as const
    await expect(compile(device, kernel('x[i] = 1;'), options)).rejects.toMatchObject({
      name: 'StatusError',
      code: 'CUDA_ERROR_NO_BINARY_FOR_GPU',
    })
  })

  test('the log of warnings becomes the log of the module', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const module = await compile(Device.get(0), kernel('int unused; x[i] = 1;'))
    expect(module.compilerLog).toContain('warning #177-D')
    module.dispose()
  })

  test('a signature that does not match the source is refused', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const module = await compile(Device.get(0), kernel(''))
    const signatures: KernelSignature[] = [[], ['f32'], ['ptr', 'ptr']]
    for (const signature of signatures)
      expect(() => module.kernel('k', signature)).toThrow(/^Module\.kernel: signature/)
    expect(() => module.kernel('k', undefined as never)).toThrow('each parameter of k (of 8 bytes), not undefined')
    expect(() => module.kernel('other', ['ptr'])).toThrow('CUDA_ERROR_NOT_FOUND')
    module.dispose()
  })
})
