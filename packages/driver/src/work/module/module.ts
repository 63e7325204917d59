import {
  type CUfunction,
  type CUmodule,
  cuFuncGetName,
  cuModuleEnumerateFunctions,
  cuModuleGetFunction,
  cuModuleGetFunctionCount,
  cuModuleGetGlobal,
  cuModuleLoadDataEx,
  cuModuleUnload,
} from '@shoal/cuda-sys/driver'
import { type NativeMemory, offThread } from '@shoal/ffi'
import { type ElementType, loadedFrom, requireMade, requireText } from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import type { ReleaseCall } from '../../core/context/releases.js'
import { checkRelease, driverError, Status } from '../../core/errors.js'
import { forgetLeak, Resource, watchForLeak } from '../../core/lifetime.js'
import { readCString, scratch } from '../../core/native.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import { elementsOfVariable, requireElementType } from '../../memory/buffers/elementType.js'
import { Kernel } from '../launch/kernel.js'
import type { KernelSignature } from '../launch/signature.js'
import { imageMemory, type ModuleImage, missingKernel, readImage, requireImagePath } from './image.js'
import { JitBlock, type JitOptions } from './jit.js'

/** @internal The origin of an image that was compiled from a source. */
export interface ImageOrigin {
  /** The compiler's log. */
  readonly log: string
  /** Names in the image, by name expression. */
  readonly names: Readonly<Record<string, string>>
}

/**
 * Code loaded onto a device, from PTX, a cubin or a fat binary.
 *
 * @example
 * ```ts
 * using module = await Module.loadFile(device, 'axpy.ptx')
 * const axpy = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
 * const table = module.global('table', 'f32')
 * ```
 */
export class Module extends Resource {
  /** @internal */
  static override get [loadedFrom](): string {
    return import.meta.url
  }
  protected readonly kind = 'Module'
  /** The context of the module. */
  readonly context: Context
  /** Log of NVRTC, if it compiled the source, and of the driver's compilation of PTX. */
  readonly compilerLog: string
  readonly #handle: CUmodule
  readonly #globals: DeviceBuffer<ElementType>[] = []
  readonly #origin: ImageOrigin | undefined

  private constructor(context: Context, handle: CUmodule, compilerLog: string, origin?: ImageOrigin) {
    requireMade(handle, 'Module', 'Module.load')
    super()
    this.context = context
    this.compilerLog = [origin?.log, compilerLog].filter((log) => log).join('\n')
    this.#origin = origin
    this.#handle = handle
    context._addChild()
    watchForLeak(this, `A Module on device ${context.device.ordinal}`, () => {
      // Its kernels and globals may still be in use. So the code stays loaded until the context is released.
      return 'its code stays loaded until the context is released'
    })
  }

  /**
   * Loads code and compiles PTX on a native thread, without blocking the event loop (`cuModuleLoadDataEx`).
   * @throws StatusError with the compiler's log in its description; RangeError for an incomplete image; TypeError
   *
   * @example
   * using module = await Module.load(device, ptx, { lineInfo: true })
   */
  static async load(owner: DeviceOrContext, image: ModuleImage, options: JitOptions = {}): Promise<Module> {
    const context = contextOf(owner, 'Module.load')
    const memory = imageMemory(image, 'Module.load')
    const jit = JitBlock.of(options, 'Module.load')
    try {
      return await Module.#load(context, memory, jit)
    } finally {
      jit.dispose()
    }
  }

  /** @internal {@link load} for an image that was compiled from a source. */
  static async _loadCompiled(
    context: Context,
    image: ModuleImage,
    jitOptions: JitOptions,
    origin: ImageOrigin,
  ): Promise<Module> {
    const jit = JitBlock.of(jitOptions, 'compile')
    try {
      return await Module.#load(context, imageMemory(image, 'compile'), jit, origin)
    } finally {
      jit.dispose()
    }
  }

  /** Like {@link load}, but blocks the thread. */
  static loadSync(owner: DeviceOrContext, image: ModuleImage, options: JitOptions = {}): Module {
    return Module._loadSync(contextOf(owner, 'Module.loadSync'), image, options, 'Module.loadSync')
  }

  /** @internal */
  static _loadSync(
    context: Context,
    image: ModuleImage,
    options: JitOptions,
    api: string,
    origin?: ImageOrigin,
  ): Module {
    const memory = imageMemory(image, api)
    const jit = JitBlock.of(options, api)
    try {
      const status: number = context.run(() =>
        cuModuleLoadDataEx(jit.result, memory, jit.count, jit.options, jit.values),
      )
      return Module.#loaded(context, status, jit, origin)
    } finally {
      memory.dispose()
      jit.dispose()
    }
  }

  /**
   * Reads a file with PTX, a cubin or a fat binary and loads it like {@link load}.
   * @throws SystemError when the file cannot be read, such as `ENOENT`; errors of {@link load}
   */
  static async loadFile(owner: DeviceOrContext, path: string | URL, options: JitOptions = {}): Promise<Module> {
    const context = contextOf(owner, 'Module.loadFile')
    requireImagePath(path, 'Module.loadFile')
    // Refuse wrong options before reading the file.
    const jit = JitBlock.of(options, 'Module.loadFile')
    try {
      const memory = imageMemory(await readImage(path, 'Module.loadFile'), 'Module.loadFile')
      return await Module.#load(context, memory, jit)
    } finally {
      jit.dispose()
    }
  }

  static async #load(context: Context, memory: NativeMemory, jit: JitBlock, origin?: ImageOrigin): Promise<Module> {
    context._requireAlive()
    context._addWait()
    try {
      const [status = Status.success] = await offThread({ context: context._handle }, () =>
        cuModuleLoadDataEx(jit.result, memory, jit.count, jit.options, jit.values),
      )
      return Module.#loaded(context, status, jit, origin)
    } finally {
      context._endWait()
      memory.dispose()
    }
  }

  static #loaded(context: Context, status: number, jit: JitBlock, origin?: ImageOrigin): Module {
    if (status !== Status.success) throw driverError(status, 'cuModuleLoadDataEx', jit.errorLog)
    return new Module(context, jit.result.u64[0] as CUmodule, jit.infoLog, origin)
  }

  /** The `CUmodule`. @throws DisposedError */
  get handle(): CUmodule {
    this._requireUsable()
    return this.#handle
  }

  /** The device of the module. */
  get device(): Context['device'] {
    return this.context.device
  }

  /**
   * Returns a kernel by its name in the image, or by a name expression of its source, and its parameter types
   * (`cuModuleGetFunction`). Drivers from 12.4 allow a check of the types' number and sizes against the image. A C++
   * kernel has its mangled name unless it is `extern "C"`.
   * @throws StatusError (`CUDA_ERROR_NOT_FOUND`) for an unknown name; TypeError for types that do not match
   *
   * @example
   * const axpy = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
   * axpy.launch({ grid: 4096, block: 256, stream }, 2, x, y, x.length)
   */
  kernel<const S extends KernelSignature>(name: string, signature: S): Kernel<S> {
    requireText(name, 'Module.kernel', 'name')
    const { handle } = this
    const out = scratch()
    const symbol = this.#symbolOf(name)
    const status: number = this.context.run(() => cuModuleGetFunction(out, handle, symbol))
    if (status !== Status.success) {
      throw driverError(
        status,
        'cuModuleGetFunction',
        missingKernel(name, () => this.kernelNames),
      )
    }
    const found = out.u64[0] as CUfunction
    return Kernel._create(this, name, { handle: found, function: found, api: 'Module.kernel' }, signature)
  }

  /**
   * Returns a `__device__` or `__constant__` variable as a buffer (`cuModuleGetGlobal`). The variable ends with the
   * module, not with the buffer.
   * @throws StatusError (`CUDA_ERROR_NOT_FOUND`) for an unknown name; RangeError for a fraction of an element;
   * TypeError
   */
  global<E extends ElementType = 'u8'>(name: string, dtype: E = 'u8' as E): DeviceBuffer<E> {
    requireText(name, 'Module.global', 'name')
    const type = requireElementType(dtype, 'Module.global')
    const { handle } = this
    const out = scratch()
    const symbol = this.#symbolOf(name)
    const status: number = this.context.run(() => cuModuleGetGlobal(out.address, out.address + 8n, handle, symbol))
    if (status !== Status.success) throw driverError(status, 'cuModuleGetGlobal', `variable: ${name}`)
    const address = out.u64[0] as bigint
    const length = elementsOfVariable(name, Number(out.u64[1]), type, 'Module.global')
    const buffer = DeviceBuffer.fromAddress(this.context, address, dtype, length, { keep: this })
    this.#globals.push(buffer)
    return buffer
  }

  /**
   * Names of the kernels (`cuModuleGetFunctionCount`, `cuModuleEnumerateFunctions`, `cuFuncGetName`).
   * @throws VersionTooOldError on drivers before 12.4; StatusError, DisposedError
   */
  get kernelNames(): readonly string[] {
    const { handle, context } = this
    const out = scratch()
    context._callDriver('cuModuleGetFunctionCount', () => cuModuleGetFunctionCount(out, handle))
    const functions = new BigUint64Array(out.u32[0] as number)
    const { length } = functions
    const list = () => cuModuleEnumerateFunctions(functions, length, handle)
    if (length > 0) context._callDriver('cuModuleEnumerateFunctions', list)
    return Array.from(functions, (each) => {
      context._callDriver('cuFuncGetName', () => cuFuncGetName(out, each as CUfunction))
      return readCString(out.u64[0] as bigint) ?? ''
    })
  }

  #symbolOf(name: string): string {
    const names = this.#origin?.names
    return names !== undefined && Object.hasOwn(names, name) ? (names[name] as string) : name
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.device.ordinal }
  }

  /** @internal */
  _requireUsable(): void {
    this._requireAlive()
    this.context._requireAlive()
  }

  protected release(): void {
    forgetLeak(this)
    for (const { _allocation } of this.#globals.splice(0)) _allocation.freed = true
    const { context } = this
    const handle = this.#handle
    const unload: ReleaseCall = {
      make: () => cuModuleUnload(handle),
      check: (status) => checkRelease(status, 'cuModuleUnload'),
    }
    context._releases.add('A Module', [unload], () => context._removeChild())
  }
}
