import {
  type CUfunc_cache,
  type CUfunction,
  type CUkernel,
  type CUlibrary,
  type CUmodule,
  cuKernelGetAttribute,
  cuKernelGetFunction,
  cuKernelGetName,
  cuKernelGetParamInfo,
  cuKernelSetAttribute,
  cuKernelSetCacheConfig,
  cuLibraryGetModule,
} from '@shoal/cuda-sys/driver'
import { type NativeMemory, offThread } from '@shoal/ffi'
import { type ElementType, loadedFrom, requireInteger, requireKeyOf, requireMade, requireText } from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { Status } from '../../core/errors.js'
import { forgetLeak, Resource, watchForLeak } from '../../core/lifetime.js'
import { readCString, scratch } from '../../core/native.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import { elementsOfVariable, requireElementType } from '../../memory/buffers/elementType.js'
import { ManagedBuffer } from '../../memory/buffers/managedBuffer.js'
import {
  attributeCode,
  type CachePreference,
  cachePreferences,
  Kernel,
  type KernelAttribute,
} from '../launch/kernel.js'
import { type ParameterInfo, parameterInfo } from '../launch/parameters.js'
import type { KernelSignature } from '../launch/signature.js'
import { imageMemory, type ModuleImage, missingKernel, readImage, requireImagePath } from '../module/image.js'
import { LibraryLoad, type LibraryOptions, type LoadedLibrary } from './loaded.js'

/**
 * Code for all devices of the process (`CUlibrary`, `cudaLibrary_t`): unlike a module it is of no context, and a device
 * loads it when something of it is asked for there. This object works on one device; {@link on} gives it for another
 * one.
 *
 * @example
 * ```ts
 * using library = await Library.loadFile(device, 'axpy.ptx')
 * const axpy = library.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
 * const there = library.on(other).kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
 * ```
 */
export class Library extends Resource {
  /** @internal */
  static override get [loadedFrom](): string {
    return import.meta.url
  }
  protected readonly kind = 'Library'
  /** The context that it works in. */
  readonly context: Context
  readonly #loaded: LoadedLibrary
  /** The one that was loaded, where this was made by {@link on}. */
  readonly #root: Library | undefined
  readonly #views = new Set<Library>()
  readonly #globals: DeviceBuffer<ElementType>[] = []
  readonly #managed: ManagedBuffer<ElementType>[] = []

  private constructor(context: Context, loaded: LoadedLibrary, root?: Library) {
    requireMade(loaded?.addUse, 'Library', 'Library.load', 'function')
    super()
    this.context = context
    this.#loaded = loaded
    this.#root = root
    loaded.addUse()
    context._addChild()
    if (root !== undefined) return
    watchForLeak(this, `A Library on device ${context.device.ordinal}`, () => 'its code stays loaded')
  }

  /**
   * Loads code and compiles PTX, on a native thread: the event loop goes on (`cuLibraryLoadData`,
   * `cudaLibraryLoadData`).
   * @throws StatusError with the compiler's log in its description; RangeError for an image that is cut off; TypeError
   */
  static async load(owner: DeviceOrContext, image: ModuleImage, options: LibraryOptions = {}): Promise<Library> {
    const loading = new LibraryLoad(owner, options, 'Library.load')
    return await Library.#load(loading, imageMemory(image, loading.api))
  }

  /** Like {@link load}, but blocks the thread for as long as it takes. */
  static loadSync(owner: DeviceOrContext, image: ModuleImage, options: LibraryOptions = {}): Library {
    const loading = new LibraryLoad(owner, options, 'Library.loadSync')
    const memory = imageMemory(image, loading.api)
    const { context } = loading
    return new Library(
      context,
      loading.finish(
        context.run(() => loading.call(memory)),
        memory,
      ),
    )
  }

  /**
   * Reads a file of PTX, a cubin or a fat binary and loads it like {@link load}.
   * @throws SystemError when the file cannot be read, such as `ENOENT`; what {@link load} throws
   */
  static async loadFile(owner: DeviceOrContext, path: string | URL, options: LibraryOptions = {}): Promise<Library> {
    const loading = new LibraryLoad(owner, options, 'Library.loadFile')
    requireImagePath(path, loading.api)
    return await Library.#load(loading, imageMemory(await readImage(path, loading.api), loading.api))
  }

  static async #load(loading: LibraryLoad, memory: NativeMemory): Promise<Library> {
    const { context } = loading
    context._requireAlive()
    context._addWait()
    try {
      const [status = Status.success] = await offThread({ context: context._handle }, () => loading.call(memory))
      return new Library(context, loading.finish(status, memory))
    } finally {
      context._endWait()
    }
  }

  /** The `CUlibrary` or `cudaLibrary_t`. @throws DisposedError */
  get handle(): CUlibrary {
    this._requireUsable()
    return this.#loaded.handle
  }

  /** The device that it works on. */
  get device(): Context['device'] {
    return this.context.device
  }

  /**
   * What the compiler of the driver has said so far while it compiled PTX; empty for binary code. @throws DisposedError
   */
  get compilerLog(): string {
    this._requireUsable()
    return this.#loaded.infoLog
  }

  /** The same library, not loaded anew, for another device: its kernels run there. It ends with this one. */
  on(owner: DeviceOrContext): Library {
    const context = contextOf(owner, 'Library.on')
    this._requireUsable()
    const root = this.#root ?? this
    const view = new Library(context, this.#loaded, root)
    root.#views.add(view)
    return view
  }

  /**
   * A kernel by its name in the image and the types of its parameters (`cuLibraryGetKernel`, `cudaLibraryGetKernel`).
   * Their number and sizes are checked against the image on drivers from 12.4.
   * @throws StatusError (`CUDA_ERROR_NOT_FOUND`) when there is none of this name; TypeError when the types do not fit
   */
  kernel<const S extends KernelSignature>(name: string, signature: S): Kernel<S> {
    const api = 'Library.kernel'
    const kernel = this.#kernel(name, api)
    const ofDriver = this.#asFunction(kernel)
    const handle = this.context._cuda.name === 'driver' ? ofDriver : (kernel as bigint as CUfunction)
    return Kernel._create(this, name, { handle, function: ofDriver, api }, signature)
  }

  /** The `CUkernel` or `cudaKernel_t` of a name, which is of no context. @throws as {@link kernel} */
  kernelHandle(name: string): CUkernel {
    return this.#kernel(name, 'Library.kernelHandle')
  }

  /** How many kernels it has (`cuLibraryGetKernelCount`, `cudaLibraryGetKernelCount`). */
  get kernelCount(): number {
    const { handle } = this
    const out = scratch()
    this.context._call('libraryGetKernelCount', out, handle)
    return out.u32[0] as number
  }

  /** The names of its kernels (`cuLibraryEnumerateKernels`, `cudaLibraryEnumerateKernels`, `cuKernelGetName`). */
  get kernelNames(): readonly string[] {
    const { handle, kernelCount, context } = this
    if (kernelCount === 0) return []
    const kernels = new BigUint64Array(kernelCount)
    context._call('libraryEnumerateKernels', kernels, kernelCount, handle)
    const out = scratch()
    return Array.from(kernels, (kernel) => {
      context._callDriver('cuKernelGetName', () => cuKernelGetName(out, kernel as CUkernel))
      return readCString(out.u64[0] as bigint) ?? ''
    })
  }

  /**
   * Where the parameters of a kernel lie, and their bytes, as the image declares them (`cuKernelGetParamInfo`).
   * @throws StatusError (`CUDA_ERROR_NOT_FOUND`), VersionTooOldError on drivers before 12.4
   */
  parameters(name: string): readonly ParameterInfo[] {
    const kernel = this.#kernel(name, 'Library.parameters')
    return parameterInfo(this.context, 'cuKernelGetParamInfo', (index, offset, size) =>
      cuKernelGetParamInfo(kernel, index, offset, size),
    )
  }

  /** An attribute that a kernel has on this device, without loading it there (`cuKernelGetAttribute`). */
  kernelAttribute(name: string, attribute: KernelAttribute): number {
    const api = 'Library.kernelAttribute'
    const code = attributeCode(attribute, api)
    const kernel = this.#kernel(name, api)
    const { device } = this
    const out = scratch()
    const get = () => cuKernelGetAttribute(out, code, kernel, device.handle)
    this.context._callDriver('cuKernelGetAttribute', get)
    return out.i32[0] as number
  }

  /** Sets an attribute of a kernel for this device (`cuKernelSetAttribute`). @throws as `Kernel.setAttribute` */
  setKernelAttribute(name: string, attribute: KernelAttribute, value: number): void {
    const api = 'Library.setKernelAttribute'
    const code = attributeCode(attribute, api)
    const wanted = requireInteger(value, api, 'value', -(2 ** 31), 2 ** 31 - 1)
    const kernel = this.#kernel(name, api)
    const { device } = this
    const set = () => cuKernelSetAttribute(code, wanted, kernel, device.handle)
    this.context._callDriver('cuKernelSetAttribute', set)
  }

  /** What a kernel would rather have more of on this device (`cuKernelSetCacheConfig`). */
  setKernelCacheConfig(name: string, preference: CachePreference): void {
    const api = 'Library.setKernelCacheConfig'
    const config = requireKeyOf(preference, api, 'preference', cachePreferences) as CUfunc_cache
    const kernel = this.#kernel(name, api)
    const { device } = this
    const set = () => cuKernelSetCacheConfig(kernel, config, device.handle)
    this.context._callDriver('cuKernelSetCacheConfig', set)
  }

  /**
   * A `__device__` or `__constant__` variable of the image on this device as a buffer (`cuLibraryGetGlobal`,
   * `cudaLibraryGetGlobal`). The variable ends with the library, not with the buffer.
   * @throws StatusError (`CUDA_ERROR_NOT_FOUND`) when there is none of this name; RangeError when its bytes are no
   * whole number of elements; TypeError
   */
  global<E extends ElementType = 'u8'>(name: string, dtype: E = 'u8' as E): DeviceBuffer<E> {
    const { address, length } = this.#variable('libraryGetGlobal', name, dtype, 'Library.global')
    const buffer = DeviceBuffer.fromAddress(this.context, address, dtype, length, { keep: this })
    this.#globals.push(buffer)
    return buffer
  }

  /**
   * A `__managed__` variable of the image, one for the host and all devices (`cuLibraryGetManaged`,
   * `cudaLibraryGetManaged`). dispose() of the buffer, and of the library, empties its array. @throws as {@link global}
   */
  managed<E extends ElementType = 'u8'>(name: string, dtype: E = 'u8' as E): ManagedBuffer<E> {
    const { address, length } = this.#variable('libraryGetManaged', name, dtype, 'Library.managed')
    const loaded = this.#loaded
    const buffer = ManagedBuffer._ofVariable(this.context, dtype, length, address, () => loaded.removeUse())
    loaded.addUse()
    this.#managed.push(buffer)
    return buffer
  }

  /**
   * The address of a function that host and devices can call alike (`cuLibraryGetUnifiedFunction`,
   * `cudaLibraryGetUnifiedFunction`). @throws StatusError (`CUDA_ERROR_NOT_FOUND`) when there is none of this name
   */
  unifiedFunction(name: string): bigint {
    requireText(name, 'Library.unifiedFunction', 'name')
    const { handle } = this
    const out = scratch()
    this.#loaded.call(this.context, 'libraryGetUnifiedFunction', `function: ${name}`, out, handle, name)
    return out.u64[0] as bigint
  }

  /** The `CUmodule` that it is on this device, which ends with the library (`cuLibraryGetModule`). */
  get moduleHandle(): CUmodule {
    const { handle } = this
    const out = scratch()
    this.context._callDriver('cuLibraryGetModule', () => cuLibraryGetModule(out, handle))
    return out.u64[0] as CUmodule
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
    for (const view of this.#views) view.dispose()
    if (this.#root !== undefined) this.#root.#views.delete(this)
    for (const { _allocation } of this.#globals.splice(0)) _allocation.freed = true
    // What still looks into a variable of the host keeps the library loaded.
    for (const buffer of this.#managed.splice(0)) buffer.dispose()
    try {
      this.#loaded.removeUse()
    } finally {
      this.context._removeChild()
    }
  }

  #kernel(name: string, api: string): CUkernel {
    requireText(name, api, 'name')
    const { handle } = this
    const out = scratch()
    this.#loaded.call(
      this.context,
      'libraryGetKernel',
      () => missingKernel(name, () => this.kernelNames),
      out,
      handle,
      name,
    )
    return out.u64[0] as CUkernel
  }

  /** What the context calls the kernel, which is loaded there now if it was not. */
  #asFunction(kernel: CUkernel): CUfunction {
    const out = scratch()
    this.context._callDriver('cuKernelGetFunction', () => cuKernelGetFunction(out, kernel))
    return out.u64[0] as CUfunction
  }

  #variable(call: 'libraryGetGlobal' | 'libraryGetManaged', name: string, dtype: ElementType, api: string) {
    requireText(name, api, 'name')
    const type = requireElementType(dtype, api)
    const { handle } = this
    const out = scratch()
    this.#loaded.call(this.context, call, `variable: ${name}`, out.address, out.address + 8n, handle, name)
    return { address: out.u64[0] as bigint, length: elementsOfVariable(name, Number(out.u64[1]), type, api) }
  }
}
