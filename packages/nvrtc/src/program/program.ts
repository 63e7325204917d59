import {
  inspectKey,
  inspectLine,
  isPlainObject,
  loadedFrom,
  type OptionKeys,
  optionalOptions,
  optionalSignal,
  requireText,
  wrongType,
} from '@shoal/types'
import { type Cached, lookUp, store } from '../cache/cache.js'
import type { CompiledData, Request } from '../compilation/data.js'
import { type Abortable, untilAborted } from '../native/abort.js'
import { runHere, runOffThread } from '../native/calls.js'
import { type CompileOptions, commandRules, requireCache } from '../options/compileOptions.js'
import { encodeOptions, requireTexts } from '../options/encode.js'
import { compilation } from './compilation.js'
import { Compiled } from './compiled.js'

/** What belongs to a source. */
export interface ProgramOptions {
  /** The name that messages and line numbers carry. Default: `'program.cu'`. */
  readonly name?: string | undefined
  /** Headers as texts, by the names that they are included by. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Kernels and variables whose names in the code are asked for, templates above all: `'scale<float>'`, `'&table'`. */
  readonly nameExpressions?: readonly string[] | undefined
}

const programKeys: OptionKeys<ProgramOptions> = { name: true, headers: true, nameExpressions: true }
const compileKeys = {
  ...Object.fromEntries(Object.keys(commandRules).map((key) => [key, true])),
  cache: true,
} as OptionKeys<CompileOptions>
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
export class Program {
  static readonly [loadedFrom]: string = import.meta.url

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
    const { name = 'program.cu', headers = {}, nameExpressions = [] } = optionalOptions(options, 'Program', programKeys)
    this.source = requireText(source, 'Program', 'source')
    this.name = requireText(name, 'Program', 'name')
    this.headers = Object.freeze(requireHeaders(headers))
    this.nameExpressions = Object.freeze([...new Set(requireTexts(nameExpressions, 'Program', 'nameExpressions'))])
  }

  /**
   * Compiles it on a native thread: the event loop goes on (`nvrtcCompileProgram`).
   * @throws CompileError with the log and its messages; LibraryNotFoundError where there is no NVRTC; AbortedError; TypeError, RangeError
   */
  async compile(options?: CompileOptions & Abortable): Promise<Compiled> {
    const api = 'Program.compile'
    const { signal: given, ...others } = optionalOptions(options, api, offThreadKeys)
    const signal = optionalSignal(given, api)
    return untilAborted(
      async () => {
        const { request, cached } = this.#prepare(others, api)
        if (cached.found !== undefined) return this.#result(cached.found, cached)
        return this.#compiled(await runOffThread(compilation(request), { signal }), cached)
      },
      signal,
      api,
    )
  }

  /** Like {@link compile}, but blocks the thread for as long as it takes. */
  compileSync(options?: CompileOptions): Compiled {
    const { request, cached } = this.#prepare(
      optionalOptions(options, 'Program.compileSync', compileKeys),
      'Program.compileSync',
    )
    if (cached.found !== undefined) return this.#result(cached.found, cached)
    return this.#compiled(runHere(compilation(request)), cached)
  }

  #prepare({ cache, ...options }: Partial<CompileOptions>, api: string): { request: Request; cached: Cached } {
    const { source, name, headers, nameExpressions } = this
    const request = { source, name, headers, nameExpressions, options: encodeOptions(options, commandRules, api) }
    return { request, cached: lookUp(request, options, requireCache(cache, api), api) }
  }

  #compiled(data: CompiledData, cached: Cached): Compiled {
    return new Compiled(this.name, data, 'compiler', store(cached, data) ?? cached.problem)
  }

  #result(data: CompiledData, cached: Cached): Compiled {
    return new Compiled(this.name, data, cached.origin ?? 'memory', cached.problem)
  }

  [inspectKey](): string {
    return inspectLine('Program', { name: this.name, characters: this.source.length })
  }
}

function requireHeaders(value: unknown): Record<string, string> {
  if (!isPlainObject(value))
    throw wrongType('Program', 'headers', "a plain object such as { 'a.h': '#define A 1' }", value)
  const headers: Record<string, string> = {}
  for (const [name, text] of Object.entries(value)) {
    requireText(name, 'Program', 'headers')
    if (typeof text !== 'string' || text.includes('\0'))
      throw wrongType('Program', `headers.${name}`, 'a string without NUL characters', text)
    headers[name] = text
  }
  return headers
}
