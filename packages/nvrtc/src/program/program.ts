import {
  inspectKey,
  inspectLine,
  loadedFrom,
  type OptionKeys,
  optionalOptions,
  optionalSignal,
  PublicObject,
  requireText,
  settledNow,
} from '@shoal/types'
import { type Cached, lookUp, store } from '../cache/cache.js'
import type { CompiledData, Request } from '../compilation/data.js'
import { type Abortable, untilAborted } from '../native/abort.js'
import { runHere, runOffThread } from '../native/calls.js'
import { type CompileOptions, commandRules, compileKeys, requireCache } from '../options/compileOptions.js'
import { cudaHeaderFolders } from '../options/cudaHeaders.js'
import { encodeOptions } from '../options/encode.js'
import { compilation } from './compilation.js'
import { Compiled } from './compiled.js'
import { type ProgramOptions, programKeys, readProgramOptions } from './programOptions.js'

const offThreadKeys: OptionKeys<CompileOptions & Abortable> = { ...compileKeys, signal: true }

/**
 * CUDA C++ as text, with its headers and name expressions; compiled as often as is wanted. It holds nothing of NVRTC.
 *
 * @example
 * ```ts
 * const program = new Program('template <class T> __global__ void scale(T* x, T a) { x[threadIdx.x] *= a; }', {
 *   nameExpressions: ['scale<float>'],
 * })
 * const compiled = await program.compile({ architecture: 'sm_90' })
 * compiled.cubin; compiled.lowered('scale<float>')
 * ```
 */
export class Program extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** CUDA C++. */
  readonly source: string
  /** What messages call the source. */
  readonly name: string
  /** Headers by the name that the source includes. */
  readonly headers: Readonly<Record<string, string>>
  /** Kernels and variables whose lowered names are kept, such as instances of templates. */
  readonly nameExpressions: readonly string[]

  /** @throws TypeError, RangeError */
  constructor(source: string, options?: ProgramOptions) {
    super()
    const { name, headers, nameExpressions } = readProgramOptions(
      optionalOptions(options, 'Program', programKeys),
      'Program',
    )
    this.source = requireText(source, 'Program', 'source')
    this.name = name
    this.headers = headers
    this.nameExpressions = nameExpressions
  }

  /**
   * Compiles it on a native thread: the event loop goes on (`nvrtcCompileProgram`).
   * @throws CompileError with the log and its messages; LibraryNotFoundError where there is no NVRTC; AbortedError;
   * TypeError, RangeError
   */
  async compile(options?: CompileOptions & Abortable): Promise<Compiled> {
    const api = 'Program.compile'
    return this._compile(optionalOptions(options, api, offThreadKeys), api)
  }

  /** Like {@link compile}, but blocks the thread for as long as it takes. */
  compileSync(options?: CompileOptions): Compiled {
    const api = 'Program.compileSync'
    return this._compileSync(optionalOptions(options, api, compileKeys), api)
  }

  /** @internal {@link compile} with options of known keys, for the function that was called. */
  async _compile({ signal: given, ...options }: Partial<CompileOptions & Abortable>, api: string): Promise<Compiled> {
    const signal = optionalSignal(given, api)
    return untilAborted(
      async () => {
        const { request, cached } = this.#prepare(options, api)
        if (cached.found !== undefined) return settledNow(this.#result(cached.found, cached))
        return this.#compiled(await runOffThread(compilation(request), { signal }), cached)
      },
      signal,
      api,
    )
  }

  /** @internal The same without a promise. */
  _compileSync(options: Partial<CompileOptions>, api: string): Compiled {
    const { request, cached } = this.#prepare(options, api)
    if (cached.found !== undefined) return this.#result(cached.found, cached)
    return this.#compiled(runHere(compilation(request)), cached)
  }

  #prepare({ cache, ...given }: Partial<CompileOptions>, api: string): { request: Request; cached: Cached } {
    const { source, name, headers, nameExpressions } = this
    const place = requireCache(cache, api)
    encodeOptions(given, commandRules, api) // wrong options are an error also without an NVRTC
    const includeFolders = [...(given.includeFolders ?? []), ...cudaHeaderFolders()]
    const options = includeFolders.length === 0 ? given : { ...given, includeFolders }
    const request = { source, name, headers, nameExpressions, options: encodeOptions(options, commandRules, api) }
    return { request, cached: lookUp(request, options, place) }
  }

  #compiled(data: CompiledData, cached: Cached): Compiled {
    return new Compiled(this.name, data, 'compiler', store(cached, data) ?? cached.problem)
  }

  #result(data: CompiledData, cached: Cached): Compiled {
    return new Compiled(this.name, data, cached.origin ?? 'memory', cached.problem)
  }

  override [inspectKey](): string {
    return inspectLine('Program', { name: this.name, characters: this.source.length })
  }
}
