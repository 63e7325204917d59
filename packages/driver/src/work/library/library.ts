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
 * Code for all devices of the process (`CUlibrary`, `cudaLibrary_t`).
 *
 * Unlike a module, a library has no context. A device loads the library when one of its objects is first used on the
 * device. This object works on one device; {@link on} returns an object for another device.
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
  /** The context in which this object works. */
  readonly context: Context
  readonly #loaded: LoadedLibrary
  /** The loaded library, if {@link on} created this object. */
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
   * Loads code and compiles PTX on a native thread, without blocking the event loop (`cuLibraryLoadData`,
   * `cudaLibraryLoadData`).
   * @throws StatusError with the compiler's log in its description; RangeError for an incomplete image; TypeError
   */
  static async load(owner: DeviceOrContext, image: ModuleImage, options: LibraryOptions = {}): Promise<Library> {
    const loading = new LibraryLoad(owner, options, 'Library.load')
    return await Library.#load(loading, imageMemory(image, loading.api))
  }

  /** Like {@link load}, but blocks the thread. */
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
   * Reads a file with PTX, a cubin or a fat binary and loads it like {@link load}.
   * @throws SystemError when the file cannot be read, such as `ENOENT`; errors of {@link load}
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

  /** The device on which this object works. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** The driver's log of compiling PTX so far; empty for binary code. @throws DisposedError */
  get compilerLog(): string {
    this._requireUsable()
    return this.#loaded.infoLog
  }

  /**
   * Returns an object of the same library for another device, without loading it again. The returned object ends with
   * this one.
   */
  on(owner: DeviceOrContext): Library {
    const context = contextOf(owner, 'Library.on')
    this._requireUsable()
    const root = this.#root ?? this
    const view = new Library(context, this.#loaded, root)
    root.#views.add(view)
    return view
  }

  /**
   * Returns a kernel by its name in the image and its parameter types (`cuLibraryGetKernel`, `cudaLibraryGetKernel`).
   * Drivers from 12.4 allow a check of the types' number and sizes against the image.
   * @throws StatusError (`CUDA_ERROR_NOT_FOUND`) for an unknown name; TypeError for types that do not match
   */
  kernel<const S extends KernelSignature>(name: string, signature: S): Kernel<S> {
    const api = 'Library.kernel'
    const kernel = this.#kernel(name, api)
    const ofDriver = this.#asFunction(kernel)
    const handle = this.context._cuda.name === 'driver' ? ofDriver : (kernel as bigint as CUfunction)
    return Kernel._create(this, name, { handle, function: ofDriver, api }, signature)
  }

  /** Returns a kernel's `CUkernel` or `cudaKernel_t`, which has no context. @throws as {@link kernel} */
  kernelHandle(name: string): CUkernel {
    return this.#kernel(name, 'Library.kernelHandle')
  }

  /** Number of kernels (`cuLibraryGetKernelCount`, `cudaLibraryGetKernelCount`). */
  get kernelCount(): number {
    const { handle } = this
    const out = scratch()
    this.context._call('libraryGetKernelCount', out, handle)
    return out.u32[0] as number
  }

  /** Names of the kernels (`cuLibraryEnumerateKernels`, `cudaLibraryEnumerateKernels`, `cuKernelGetName`). */
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
   * Returns offset and size of a kernel's parameters in bytes, as declared in the image (`cuKernelGetParamInfo`).
   * @throws StatusError (`CUDA_ERROR_NOT_FOUND`), VersionTooOldError on drivers before 12.4
   */
  parameters(name: string): readonly ParameterInfo[] {
    const kernel = this.#kernel(name, 'Library.parameters')
    return parameterInfo(this.context, 'cuKernelGetParamInfo', (index, offset, size) =>
      cuKernelGetParamInfo(kernel, index, offset, size),
    )
  }

  /** Returns a kernel's attribute for this device, without loading the kernel there (`cuKernelGetAttribute`). */
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

  /** Sets a kernel's attribute for this device (`cuKernelSetAttribute`). @throws as `Kernel.setAttribute` */
  setKernelAttribute(name: string, attribute: KernelAttribute, value: number): void {
    const api = 'Library.setKernelAttribute'
    const code = attributeCode(attribute, api)
    const wanted = requireInteger(value, api, 'value', -(2 ** 31), 2 ** 31 - 1)
    const kernel = this.#kernel(name, api)
    const { device } = this
    const set = () => cuKernelSetAttribute(code, wanted, kernel, device.handle)
    this.context._callDriver('cuKernelSetAttribute', set)
  }

  /** Sets a kernel's cache preference for this device (`cuKernelSetCacheConfig`). */
  setKernelCacheConfig(name: string, preference: CachePreference): void {
    const api = 'Library.setKernelCacheConfig'
    const config = requireKeyOf(preference, api, 'preference', cachePreferences) as CUfunc_cache
    const kernel = this.#kernel(name, api)
    const { device } = this
    const set = () => cuKernelSetCacheConfig(kernel, config, device.handle)
    this.context._callDriver('cuKernelSetCacheConfig', set)
  }

  /**
   * Returns a `__device__` or `__constant__` variable on this device as a buffer (`cuLibraryGetGlobal`,
   * `cudaLibraryGetGlobal`). The variable ends with the library, not with the buffer.
   * @throws StatusError (`CUDA_ERROR_NOT_FOUND`) for an unknown name; RangeError for a fraction of an element;
   * TypeError
   */
  global<E extends ElementType = 'u8'>(name: string, dtype: E = 'u8' as E): DeviceBuffer<E> {
    const { address, length } = this.#variable('libraryGetGlobal', name, dtype, 'Library.global')
    const buffer = DeviceBuffer.fromAddress(this.context, address, dtype, length, { keep: this })
    this.#globals.push(buffer)
    return buffer
  }

  /**
   * Returns a `__managed__` variable, which the host and all devices share (`cuLibraryGetManaged`,
   * `cudaLibraryGetManaged`). dispose() of the buffer or of the library detaches its array. @throws as {@link global}
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
   * Returns the address of a function that the host and devices can call (`cuLibraryGetUnifiedFunction`,
   * `cudaLibraryGetUnifiedFunction`). @throws StatusError (`CUDA_ERROR_NOT_FOUND`) for an unknown name
   */
  unifiedFunction(name: string): bigint {
    requireText(name, 'Library.unifiedFunction', 'name')
    const { handle } = this
    const out = scratch()
    this.#loaded.call(this.context, 'libraryGetUnifiedFunction', `function: ${name}`, out, handle, name)
    return out.u64[0] as bigint
  }

  /** The library's `CUmodule` on this device, which ends with the library (`cuLibraryGetModule`). */
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
    // An array that still uses a managed variable keeps the library loaded.
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

  /** Returns the context's function for a kernel. Loads the kernel there if necessary. */
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
