import { Module } from '@shoal/driver'
import {
  type Abortable,
  type Architecture,
  type Compiled,
  type CompileOptions,
  nvrtcVersion,
  Program,
  type ProgramOptions,
  supportedArchitectures,
} from '@shoal/nvrtc'
import { compileKeys, programKeys, readProgramOptions, requireCache, untilAborted } from '@shoal/nvrtc/basics'
import {
  FeatureNotSupportedError,
  isInstance,
  type OptionKeys,
  optionalSignal,
  otherCopy,
  requireOptions,
  requireText,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { type JitOptions, jitKeys } from './jit.js'

/** Options for compiling a source to a module. */
export interface ModuleCompileOptions
  extends Omit<CompileOptions, 'linkTimeOptimization' | 'optixIr' | 'syntaxOnly'>,
    ProgramOptions {
  /** The driver's options for compiling PTX, if the device receives PTX. */
  readonly jit?: JitOptions | undefined
}

/**
 * Compiles CUDA C++ for the device with NVRTC and loads it.
 *
 * NVRTC runs on a native thread and needs no CUDA toolkit. Results are cached in the process and on disk, so the same
 * source is compiled once. A GPU receives code for its own architecture. The software device, and a GPU newer than
 * NVRTC, receive PTX.
 *
 * @param source - CUDA C++ text, or a `Program` with its headers and name expressions
 * @throws CompileError with the messages and their lines; LibraryNotFoundError when NVRTC is missing; AbortedError when
 * `signal` fires (a running compilation continues, and its result is cached); StatusError, TypeError, RangeError
 *
 * @example
 * ```ts
 * using module = await compile(device, `
 *   extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
 *     int i = blockIdx.x * blockDim.x + threadIdx.x;
 *     if (i < n) y[i] += a * x[i];
 *   }`)
 * const axpy = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
 * ```
 */
export async function compile(
  owner: DeviceOrContext,
  source: string | Program,
  options: ModuleCompileOptions & Abortable = {},
): Promise<Module> {
  const { signal: given, ...others } = requireOptions(options, 'compile', offThreadKeys)
  const signal = optionalSignal(given, 'compile')
  const { context, program, compileOptions, jit } = prepare(owner, source, others, 'compile')
  return untilAborted(
    async () => {
      const compiled = await program._compile({ ...compileOptions, signal }, 'compile')
      return Module._loadCompiled(context, compiled.image, jit, originOf(compiled))
    },
    signal,
    'compile',
    (module) => module.dispose(),
  )
}

/** Like {@link compile}, but blocks the thread. */
export function compileSync(
  owner: DeviceOrContext,
  source: string | Program,
  options: ModuleCompileOptions = {},
): Module {
  const given = requireOptions(options, 'compileSync', keys)
  const { context, program, compileOptions, jit } = prepare(owner, source, given, 'compileSync')
  const compiled = program._compileSync(compileOptions, 'compileSync')
  return Module._loadSync(context, compiled.image, jit, 'compileSync', originOf(compiled))
}

// Exclude options whose results are not modules.
const { linkTimeOptimization: _, optixIr: __, syntaxOnly: ___, ...commandKeys } = compileKeys
const keys: OptionKeys<ModuleCompileOptions> = { ...programKeys, ...commandKeys, jit: true }
const offThreadKeys: OptionKeys<ModuleCompileOptions & Abortable> = { ...keys, signal: true }

const originOf = ({ log, _names }: Compiled) => ({ log, names: _names })

interface Prepared {
  readonly context: Context
  readonly program: Program
  readonly compileOptions: CompileOptions
  readonly jit: JitOptions
}

function prepare(
  owner: DeviceOrContext,
  source: string | Program,
  options: ModuleCompileOptions,
  api: string,
): Prepared {
  const context = contextOf(owner, api)
  const { jit = {}, name, headers, nameExpressions, ...given } = options
  const parts = { name, headers, nameExpressions }
  const isProgram = isInstance(source, Program)
  if (!isProgram) {
    const copy = otherCopy(source, api, 'source', Program)
    if (copy !== undefined) throw copy
    requireText(source, api, 'source')
  }
  for (const key of ['name', 'headers', 'nameExpressions'] as const) {
    if (isProgram && parts[key] !== undefined)
      throw wrongType(api, key, 'left out, since a Program has its own', parts[key])
  }
  const program = isProgram ? source : new Program(source, readProgramOptions(parts, api))
  const jitOptions = requireOptions<JitOptions>(jit, api, jitKeys, 'jit')
  // This calls NVRTC. Wrong arguments are reported first, even if NVRTC is missing.
  const { architecture = architectureOf(context, requireCache(given.cache, api), api) } = given
  return { context, program, compileOptions: { ...given, architecture }, jit: jitOptions }
}

/** Returns the device's own architecture if NVRTC supports it, else PTX of the newest earlier architecture. */
function architectureOf({ device }: Context, cache: boolean | string, api: string): Architecture {
  const { major, minor } = device.computeCapability
  const capability = major * 10 + minor
  const known = supportedArchitectures({ cache })
  const newest = known.findLast((each) => each <= capability)
  if (newest === undefined) {
    const reason = `NVRTC ${nvrtcVersion()} makes code from ${known[0]} on, and the device is of ${capability}`
    throw new FeatureNotSupportedError({ library: 'NVIDIA NVRTC', api, reason })
  }
  return `${newest === capability && !device.isSoftware ? 'sm' : 'compute'}_${newest}`
}
