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
 * CUDA C++ source with its headers and name expressions, to compile any number of times.
 *
 * A program holds no resources of NVRTC.
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

  /** The CUDA C++ source. */
  readonly source: string
  /** Name of the source in messages. */
  readonly name: string
  /** Headers, by the name in the `#include`. */
  readonly headers: Readonly<Record<string, string>>
  /** Kernels and variables whose lowered names are recorded, such as template instances. */
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
   * Compiles on a native thread, while the event loop continues (`nvrtcCompileProgram`).
   *
   * @throws CompileError with the log and its messages; LibraryNotFoundError if NVRTC is missing; AbortedError;
   * TypeError, RangeError
   */
  async compile(options?: CompileOptions & Abortable): Promise<Compiled> {
    const api = 'Program.compile'
    return this._compile(optionalOptions(options, api, offThreadKeys), api)
  }

  /** Compiles like {@link compile}, but blocks the thread. */
  compileSync(options?: CompileOptions): Compiled {
    const api = 'Program.compileSync'
    return this._compileSync(optionalOptions(options, api, compileKeys), api)
  }

  /** @internal {@link compile} with checked keys; `api` is the function that was called. */
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

  /** @internal {@link compileSync} with checked keys; `api` is the function that was called. */
  _compileSync(options: Partial<CompileOptions>, api: string): Compiled {
    const { request, cached } = this.#prepare(options, api)
    if (cached.found !== undefined) return this.#result(cached.found, cached)
    return this.#compiled(runHere(compilation(request)), cached)
  }

  #prepare({ cache, ...given }: Partial<CompileOptions>, api: string): { request: Request; cached: Cached } {
    const { source, name, headers, nameExpressions } = this
    const place = requireCache(cache, api)
    encodeOptions(given, commandRules, api) // wrong options throw even without NVRTC
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
