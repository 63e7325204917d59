import { cuCtxSynchronize } from '@shoal/cuda-sys/driver'
import {
  checkCuda,
  forgetLeak,
  type PrimaryContext,
  releasePrimaryContexts,
  retainPrimaryContexts,
  untilMemoryUnused,
  warnOnReject,
  watchForLeak,
  whenMemoryUnused,
} from '@shoal/driver/basics'
import { enterContext, leaveContext, NativeMemory, offThread } from '@shoal/ffi'
import { ncclMemAlloc, ncclMemFree } from '@shoal/nccl-sys'
import {
  type DeviceLike,
  DisposedError,
  dtypeInfo,
  dtypes,
  type ElementType,
  elementLayout,
  inspectKey,
  inspectLine,
  type MemoryLike,
  type MemoryRange,
  made,
  memoryProtocol,
  type OptionKeys,
  PublicObject,
  requireInteger,
  requireMade,
  requireOneOf,
  requireOptions,
  toDeviceOrdinal,
} from '@shoal/types'
import { checkNccl } from '../errors.js'
import { loadLibraries } from '../libraries.js'

/** Size of memory: bytes, or elements of a dtype or a struct. */
export type MemorySize = number | { readonly dtype: ElementType; readonly length: number }

// A free waits for the device, which a garbage collector must not do.
const stays = (): string => 'it stays allocated until the process ends'

/**
 * Device memory from NCCL's allocator (`ncclMemAlloc`, NCCL 2.19).
 *
 * NCCL can register this memory and access it from other ranks without a copy. Windows require such memory, or memory
 * mapped in the same way. All functions for memory accept it: collectives, and `DeviceBuffer.view(device, memory,
 * 'f32')` of `@shoal/driver` for copies and kernels.
 *
 * The memory exists until `free()`, which `await using` calls, or `dispose()`. The garbage collector only reports
 * memory that was not freed.
 */
export class NcclMemory extends PublicObject implements MemoryLike {
  /** Usable size in bytes; NCCL may have allocated more. */
  readonly byteLength: number
  /** Ordinal of the device that holds the memory. */
  readonly deviceOrdinal: number
  /** Type of the elements; undefined for memory that was allocated in bytes. */
  readonly dtype: ElementType | undefined
  /** Number of elements; undefined for memory that was allocated in bytes. */
  readonly length: number | undefined
  readonly #range: MemoryRange
  readonly #context: PrimaryContext
  #freeing: Promise<void> | undefined

  /** @internal */
  constructor(key: typeof made, context: PrimaryContext, address: bigint, size: Size) {
    requireMade(key, 'NcclMemory', 'NcclMemory.allocate', 'symbol')
    super()
    this.byteLength = size.byteLength
    this.deviceOrdinal = context.ordinal
    this.dtype = size.dtype
    this.length = size.length
    this.#context = context
    const { dtype, length } = size
    // The protocol has no structs, so other consumers see bytes.
    const elements = typeof dtype === 'string' ? { dtype, length: length as number } : {}
    this.#range = Object.freeze({
      version: 0,
      address,
      byteLength: size.byteLength,
      deviceOrdinal: context.ordinal,
      context: context.handle,
      ...elements,
    })
    watchForLeak(this, `NcclMemory of ${size.byteLength} bytes on device ${context.ordinal}`, stays, 'dispose()')
  }

  /**
   * Allocates uninitialized memory on a device, off the JavaScript thread (`ncclMemAlloc`).
   *
   * @example
   * ```ts
   * await using memory = await NcclMemory.allocate(0, { dtype: 'f32', length: 1024 })
   * const elements = DeviceBuffer.view(Device.get(0), memory, 'f32')
   * ```
   *
   * @param size bytes, or elements of a dtype or a struct; at least one.
   * @throws TypeError, RangeError for a wrong device or size; StatusError if NCCL or the driver refuses, such as
   * without enough memory; VersionTooOldError below NCCL 2.19.
   */
  static async allocate(device: DeviceLike | number, size: MemorySize): Promise<NcclMemory> {
    const api = 'NcclMemory.allocate'
    const ordinal = toDeviceOrdinal(device, api, 'device')
    const checked = checkedSize(size, api)
    loadLibraries()
    const contexts = await retainPrimaryContexts([ordinal], api)
    const [context] = contexts as [PrimaryContext]
    const out = NativeMemory.allocate(8)
    try {
      const [status = 0] = await offThread({ context: context.handle, keep: [out] }, () => {
        ncclMemAlloc(out, checked.byteLength)
      })
      checkNccl(status, 'ncclMemAlloc')
      return new NcclMemory(made, context, out.u64[0] ?? 0n, checked)
    } catch (error) {
      await releasePrimaryContexts(contexts)
      throw error
    } finally {
      out.dispose()
    }
  }

  /** The `CUdeviceptr`. @throws DisposedError after the memory was freed. */
  get address(): bigint {
    return this[memoryProtocol].address
  }

  /** Whether the memory was freed. */
  get disposed(): boolean {
    return this.#freeing !== undefined
  }

  get [memoryProtocol](): MemoryRange {
    if (this.#freeing !== undefined) throw new DisposedError({ object: 'NcclMemory' })
    return this.#range
  }

  /**
   * Waits for the device and frees the memory (`ncclMemFree`, off the JavaScript thread). Idempotent.
   *
   * Does not wait for windows and registrations of the memory, or for a cancelled call on another thread: the memory is
   * freed after them.
   *
   * @throws (rejects) StatusError if NCCL or the driver refuses.
   */
  free(): Promise<void> {
    if (this.#freeing !== undefined) return this.#freeing
    this.#freeing = this.#free()
    return this.#freeing
  }

  /**
   * Frees the memory in the background, on a native thread when the device is idle.
   *
   * An error becomes a process warning.
   */
  dispose(): void {
    if (this.#freeing !== undefined) return
    this.#freeing = this.#free()
    warnOnReject('NcclMemory', this.#freeing)
  }

  /**
   * Frees the memory, and blocks the thread until the device is idle (`cuCtxSynchronize`, `ncclMemFree`).
   *
   * If a call on another thread uses the memory, such as `groupOffThread`, the memory is freed when the call has
   * returned. Memory of a window or a registration is freed when the window or registration has ended.
   *
   * @throws StatusError if NCCL or the driver refuses.
   */
  disposeSync(): void {
    if (this.#freeing !== undefined) return
    if (whenMemoryUnused(this.#range.address, this.byteLength) !== undefined) {
      this.#freeing = this.#free()
      warnOnReject('NcclMemory', this.#freeing)
      return
    }
    forgetLeak(this)
    const context = enterContext(this.#context.handle)
    let statuses: number[]
    try {
      statuses = [cuCtxSynchronize(), ncclMemFree(this.#range.address)]
    } finally {
      leaveContext(context)
      this.#freeing = releasePrimaryContexts([this.#context])
      this.#freeing.catch(() => undefined)
    }
    this.#check(statuses)
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  /** Like `free()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.free()
  }

  get [Symbol.toStringTag](): string {
    return 'NcclMemory'
  }

  override [inspectKey](): string {
    const { deviceOrdinal, byteLength, dtype } = this
    const { address } = this.#range
    return inspectLine('NcclMemory', {
      deviceOrdinal,
      address,
      byteLength,
      dtype: typeof dtype === 'object' ? dtype.name : dtype,
      disposed: this.disposed || undefined,
    })
  }

  async #free(): Promise<void> {
    forgetLeak(this)
    const { address } = this.#range
    if (await untilMemoryUnused(address, this.byteLength)) return this.#giveBack()
    // A registration, or a cancelled call that may never return: the caller does not wait for these.
    const unused = Promise.resolve(whenMemoryUnused(address, this.byteLength))
    warnOnReject(
      'NcclMemory',
      unused.then(() => this.#giveBack()),
    )
  }

  async #giveBack(): Promise<void> {
    try {
      this.#check(
        await offThread({ context: this.#context.handle, stopOnError: false }, () => {
          cuCtxSynchronize()
          ncclMemFree(this.#range.address)
        }),
      )
    } finally {
      await releasePrimaryContexts([this.#context])
    }
  }

  #check([synchronized = 0, freed = 0]: readonly number[]): void {
    checkNccl(freed, 'ncclMemFree')
    checkCuda(synchronized, 'cuCtxSynchronize')
  }
}

interface Size {
  readonly byteLength: number
  readonly dtype: ElementType | undefined
  readonly length: number | undefined
}

const sizeKeys: OptionKeys<{ readonly dtype: ElementType; readonly length: number }> = { dtype: true, length: true }

function checkedSize(size: MemorySize, api: string): Size {
  if (typeof size !== 'object') {
    return { byteLength: requireInteger(size, api, 'size', 1), dtype: undefined, length: undefined }
  }
  requireOptions(size, api, sizeKeys, 'size')
  const { dtype } = size
  const { bytes } =
    typeof dtype === 'object'
      ? elementLayout(dtype, api, 'size.dtype')
      : dtypeInfo(requireOneOf(dtype, api, 'size.dtype', dtypes))
  const length = requireInteger(size.length, api, 'size.length', 1, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
  return { byteLength: length * bytes, dtype, length }
}
