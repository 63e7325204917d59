import type { CUlibrary } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { optionalBoolean, requireOptions } from '@shoal/types'
import type { CallName, CudaCalls } from '../../core/calls/cudaLibrary.js'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { checkRelease, Status } from '../../core/errors.js'
import { processIsEnding } from '../../core/lifetime.js'
import { JitBlock, type JitOptions, jitKeys } from '../module/jit.js'

/** How a library is loaded. */
export interface LibraryOptions extends JitOptions {
  /**
   * The library reads the image where it lies, which is kept for it, and makes no copy
   * (`CU_LIBRARY_BINARY_IS_PRESERVED`). Default: false.
   */
  readonly preserveImage?: boolean | undefined
}

const binaryIsPreserved = 1

/** A library that is about to be loaded, with its options as C reads them. */
export class LibraryLoad {
  readonly context: Context
  readonly api: string
  readonly #jit: JitBlock
  /** One value, and behind it the number of the option that it is of. */
  readonly #options: NativeMemory | undefined

  /** @throws TypeError, RangeError, DisposedError */
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

  /** The one call, in the context. Gives its status. */
  call(image: NativeMemory): number {
    const jit = this.#jit
    const option = this.#options
    const { libraryLoadData } = this.context._cuda.calls
    const [numbers, values, count] = option === undefined ? [null, null, 0] : [option.address + 8n, option, 1]
    return libraryLoadData(jit.result, image, jit.options, jit.values, jit.count, numbers, values, count)
  }

  /** @throws StatusError with the compiler's log */
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

/** Code that is loaded for all devices of the process. It is unloaded when nothing of it is in use any more. */
export class LoadedLibrary {
  readonly handle: CUlibrary
  readonly #context: Context
  readonly #jit: JitBlock
  /** The code itself, where the library goes on to read it. */
  readonly #image: NativeMemory | undefined
  #uses = 0

  constructor(context: Context, jit: JitBlock, image: NativeMemory | undefined) {
    this.handle = jit.result.u64[0] as CUlibrary
    this.#context = context
    context._addChild()
    // Code is compiled when it is needed first, and the compiler writes its log then.
    this.#jit = jit
    this.#image = image
  }

  get infoLog(): string {
    return this.#jit.infoLog
  }

  /**
   * Calls one of the library's functions in a context. @throws StatusError, with what the compiler said of a failure
   */
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
      // A reset of the device leaves it loaded: it is of no context.
      const { calls } = context._cuda
      if (!processIsEnding()) checkRelease(calls.libraryUnload(this.handle), context._cuda.nameOf('libraryUnload'))
    } finally {
      after()
    }
  }
}
