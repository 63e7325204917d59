import type { CUlibrary } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { optionalBoolean, requireOptions } from '@shoal/types'
import type { CallName, CudaCalls } from '../../core/calls/cudaLibrary.js'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { checkRelease, Status } from '../../core/errors.js'
import { processIsEnding } from '../../core/lifetime.js'
import { JitBlock, type JitOptions, jitKeys } from '../module/jit.js'

/** Options of a library. */
export interface LibraryOptions extends JitOptions {
  /**
   * Lets the library read the image in place instead of copying it; Shoal keeps the image
   * (`CU_LIBRARY_BINARY_IS_PRESERVED`). Default: false.
   */
  readonly preserveImage?: boolean | undefined
}

const binaryIsPreserved = 1

/** A library before loading, with its encoded options. */
export class LibraryLoad {
  readonly context: Context
  readonly api: string
  readonly #jit: JitBlock
  /** Values of library options, then the options' numbers. */
  readonly #options: NativeMemory | undefined

  /** Checks and encodes the options. @throws TypeError, RangeError, DisposedError */
  constructor(owner: DeviceOrContext, given: LibraryOptions, api: string) {
    this.context = contextOf(owner, api)
    this.api = api
    const options = requireOptions<LibraryOptions>(given, api, { ...jitKeys, preserveImage: true })
    const isPreserved = optionalBoolean(options.preserveImage, api, 'preserveImage', false)
    this.#jit = new JitBlock(options, api)
    if (!isPreserved) return
    this.#options = NativeMemory.allocate(16)
    this.#options.u64[0] = 1n
    this.#options.u32[2] = binaryIsPreserved
  }

  /** Makes the one loading call in the context. Returns its status. */
  call(image: NativeMemory): number {
    const jit = this.#jit
    const option = this.#options
    const { libraryLoadData } = this.context._cuda.calls
    const [numbers, values, count] = option === undefined ? [null, null, 0] : [option.address + 8n, option, 1]
    return libraryLoadData(jit.result, image, jit.options, jit.values, jit.count, numbers, values, count)
  }

  /** Checks the status and returns the library. @throws StatusError with the compiler's log */
  finish(status: number, image: NativeMemory): LoadedLibrary {
    const { context } = this
    const isLoaded = status === Status.success
    const isPreserved = isLoaded && this.#options !== undefined
    if (!isPreserved) image.dispose()
    if (!isLoaded) {
      const { errorLog } = this.#jit
      this.#jit.dispose()
      throw context._error(status, 'libraryLoadData', errorLog)
    }
    return new LoadedLibrary(context, this.#jit, isPreserved ? image : undefined)
  }
}

/** Code loaded for all devices of the process. It is unloaded when no part of it is in use any more. */
export class LoadedLibrary {
  readonly handle: CUlibrary
  readonly #context: Context
  readonly #jit: JitBlock
  /** The image, if the library continues to read it. */
  readonly #image: NativeMemory | undefined
  #uses = 0

  constructor(context: Context, jit: JitBlock, image: NativeMemory | undefined) {
    this.handle = jit.result.u64[0] as CUlibrary
    this.#context = context
    context._addChild()
    // The driver compiles code when it is first needed, and writes the log then.
    this.#jit = jit
    this.#image = image
  }

  get infoLog(): string {
    return this.#jit.infoLog
  }

  /** Calls a function of the library in a context. @throws StatusError with the compiler's log */
  call<N extends CallName>(
    context: Context,
    name: N,
    detail: string | (() => string),
    ...args: Parameters<CudaCalls[N]>
  ): void {
    const status = context._status(name, ...args)
    if (status === Status.success) return
    const text = typeof detail === 'string' ? detail : detail()
    throw context._error(status, name, `${text}\n${this.#jit.errorLog}`.trim())
  }

  addUse(): void {
    this.#uses += 1
  }

  removeUse(): void {
    this.#uses -= 1
    if (this.#uses > 0) return
    const context = this.#context
    const after = (): void => {
      this.#jit.dispose()
      this.#image?.dispose()
      context._removeChild()
    }
    if (!context.disposed) {
      context._releases.add('A Library', [context._releaseCall('libraryUnload', this.handle)], after)
      return
    }
    try {
      // A device reset does not unload the library, because the library has no context.
      const { calls } = context._cuda
      if (!processIsEnding()) checkRelease(calls.libraryUnload(this.handle), context._cuda.nameOf('libraryUnload'))
    } finally {
      after()
    }
  }
}
