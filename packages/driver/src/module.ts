import {
  driverError,
  forgetLeak,
  Resource,
  requireDType,
  requireName,
  Status,
  scratch,
  watchForLeak,
} from '@shoal/cuda-base'
import {
  type CUmodule,
  cuModuleGetFunction,
  cuModuleGetGlobal,
  cuModuleLoadDataEx,
  cuModuleUnload,
} from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import { type DType, dtypeInfo } from '@shoal/types'
import { type Context, type ContextSource, contextOf } from './context.js'
import { imageMemory, type ModuleImage } from './image.js'
import { JitBlock, type JitOptions } from './jit.js'
import { Kernel } from './kernel.js'
import { DeviceBuffer } from './memory/deviceBuffer.js'
import type { KernelSignature } from './signature.js'

/** Code loaded onto a device, from PTX, a cubin or a fat binary. */
export class Module extends Resource {
  protected readonly kind = 'Module'
  readonly context: Context
  /** What the compiler of the driver said while it compiled PTX; empty for binary code. */
  readonly compilerLog: string
  readonly #handle: CUmodule
  readonly #globals: DeviceBuffer[] = []

  private constructor(context: Context, handle: CUmodule, compilerLog: string) {
    super()
    this.context = context
    this.compilerLog = compilerLog
    this.#handle = handle
    context._addChild()
    watchForLeak(this, `A Module on device ${context.device.ordinal}`, () => {
      // Its kernels may still run and its globals may still be in use: unloading waits for the context to end.
      return 'its code stays loaded until the context is released'
    })
  }

  /**
   * Loads code, compiling PTX for the device, which blocks the thread for as long as that takes; see {@link loadAsync}
   * (`cuModuleLoadDataEx`).
   * @throws StatusError with the compiler's log in its description, RangeError for an image that is cut off.
   */
  static load(source: ContextSource, image: ModuleImage, options: JitOptions = {}): Module {
    const context = contextOf(source)
    const memory = imageMemory(image)
    const jit = new JitBlock(options)
    try {
      const status: number = context.run(() =>
        cuModuleLoadDataEx(jit.result, memory, jit.count, jit.options, jit.values),
      )
      return Module.#loaded(context, status, jit)
    } finally {
      memory.dispose()
      jit.dispose()
    }
  }

  /** Like {@link load}, on a native thread: the event loop goes on while PTX is compiled. */
  static async loadAsync(source: ContextSource, image: ModuleImage, options: JitOptions = {}): Promise<Module> {
    const context = contextOf(source)
    const memory = imageMemory(image)
    const jit = new JitBlock(options)
    context._addWait()
    try {
      const [status = Status.success] = await offThread({ context: context._handle }, () =>
        cuModuleLoadDataEx(jit.result, memory, jit.count, jit.options, jit.values),
      )
      return Module.#loaded(context, status, jit)
    } finally {
      context._endWait()
      memory.dispose()
      jit.dispose()
    }
  }

  /** Loads code from a file of any of the three kinds, without blocking the thread. */
  static async loadFile(source: ContextSource, path: string | URL, options: JitOptions = {}): Promise<Module> {
    const context = contextOf(source)
    // Loaded here and not above: every program that imports this package would pay for it.
    const { readFile } = await import('node:fs/promises')
    return Module.loadAsync(context, await readFile(path), options)
  }

  static #loaded(context: Context, status: number, jit: JitBlock): Module {
    if (status !== Status.success) throw driverError(status, 'cuModuleLoadDataEx', jit.errorLog)
    return new Module(context, jit.result.u64[0] as CUmodule, jit.infoLog)
  }

  /** The `CUmodule`. @throws DisposedError */
  get handle(): CUmodule {
    this._requireUsable()
    return this.#handle
  }

  get device(): Context['device'] {
    return this.context.device
  }

  /**
   * A kernel by its name in the image and the types of its parameters, which are checked against the image where the
   * driver can tell (12.4 and newer). A C++ kernel has its mangled name unless it is `extern "C"`
   * (`cuModuleGetFunction`).
   * @throws StatusError (CUDA_ERROR_NOT_FOUND) when there is none, TypeError when the types do not fit.
   */
  kernel<const S extends KernelSignature>(name: string, signature: S): Kernel<S> {
    requireName(name, 'kernel name')
    const { handle } = this
    const out = scratch()
    const status: number = this.context.run(() => cuModuleGetFunction(out, handle, name))
    if (status !== Status.success) throw driverError(status, 'cuModuleGetFunction', `kernel: ${name}`)
    return Kernel._create(this, name, out.u64[0] as bigint, signature)
  }

  /**
   * A `__device__` or `__constant__` variable of the image as a buffer (`cuModuleGetGlobal`). It is freed with the
   * module, not with the buffer.
   */
  global<D extends DType = 'u8'>(name: string, dtype: D = 'u8' as D): DeviceBuffer<D> {
    requireName(name, 'variable name')
    requireDType(dtype)
    const { handle } = this
    const out = scratch()
    const status: number = this.context.run(() => cuModuleGetGlobal(out.address, out.address + 8n, handle, name))
    if (status !== Status.success) throw driverError(status, 'cuModuleGetGlobal', `variable: ${name}`)
    const address = out.u64[0] as bigint
    const byteLength = Number(out.u64[1])
    const { bytes } = dtypeInfo(dtype)
    if (byteLength % bytes !== 0)
      throw new RangeError(`${name} has ${byteLength} bytes, not a whole number of ${dtype}`)
    const buffer = DeviceBuffer.fromAddress(this.context, address, dtype, byteLength / bytes, this)
    this.#globals.push(buffer)
    return buffer
  }

  get [Symbol.toStringTag](): string {
    return 'Module'
  }

  /** @internal */
  _requireUsable(): void {
    this._requireAlive()
    this.context._requireAlive()
  }

  protected release(): void {
    forgetLeak(this)
    for (const { _allocation } of this.#globals.splice(0)) _allocation.freed = true
    try {
      this.context._release('cuModuleUnload', () => cuModuleUnload(this.#handle))
    } finally {
      this.context._removeChild()
    }
  }
}
