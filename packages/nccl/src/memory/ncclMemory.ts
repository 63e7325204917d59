import {
  checkCuda,
  forgetLeak,
  type PrimaryContext,
  releasePrimaryContexts,
  retainPrimaryContexts,
  watchForLeak,
} from '@shoal/cuda-base/basics'
import { cuCtxSynchronize } from '@shoal/cuda-sys/driver'
import { NativeMemory, offThread } from '@shoal/ffi'
import { ncclMemAlloc, ncclMemFree } from '@shoal/nccl-sys'
import {
  type DeviceLike,
  DisposedError,
  type DType,
  describeValue,
  dtypeInfo,
  dtypes,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  toDeviceOrdinal,
} from '@shoal/types'
import { checkNccl } from '../errors.js'
import { loadLibraries } from '../libraries.js'
import { registrationWithin } from './registeredRanges.js'

/** How much memory: bytes, or elements of a dtype. */
export type MemorySize = number | { readonly dtype: DType; readonly length: number }

const constructing = Symbol('NcclMemory')
// Freeing waits for the device, which a collector must not.
const stays = (): string => 'it stays allocated until the process ends'

/**
 * Device memory from NCCL's allocator (`ncclMemAlloc`, NCCL 2.19): memory that NCCL can register and reach from other
 * ranks without a copy. Windows need it, or other memory mapped in the same way. It counts as memory everywhere: in
 * collectives, and in `DeviceBuffer.view(device, memory, 'f32')` of `@shoal/driver` for copies and kernels.
 *
 * It lives until `free()`, which `await using` calls; the collector only reports what was forgotten.
 */
export class NcclMemory implements MemoryLike {
  /** Usable size in bytes; NCCL may have set aside more. */
  readonly byteLength: number
  /** Ordinal of the device that holds it. */
  readonly device: number
  /** Type of its elements, where it was allocated for one. */
  readonly dtype: DType | undefined
  /** Number of elements, where it has a dtype. */
  readonly length: number | undefined
  readonly #range: MemoryRange
  readonly #context: PrimaryContext
  #freeing: Promise<void> | undefined

  /** @internal */
  constructor(key: typeof constructing, context: PrimaryContext, address: bigint, size: Size) {
    if (key !== constructing) throw new TypeError('NcclMemory is made by NcclMemory.allocate')
    this.byteLength = size.byteLength
    this.device = context.ordinal
    this.dtype = size.dtype
    this.length = size.length
    this.#context = context
    const elements = size.dtype === undefined ? {} : { dtype: size.dtype, length: size.length as number }
    this.#range = Object.freeze({
      version: 0,
      address,
      byteLength: size.byteLength,
      deviceOrdinal: context.ordinal,
      context: context.handle,
      ...elements,
    })
    watchForLeak(this, this.#name(), stays, 'free()')
  }

  /**
   * Allocates on a device, off the JavaScript thread (`ncclMemAlloc`). Not zeroed.
   *
   * @param size bytes, or elements of a dtype; at least one.
   * @throws TypeError, RangeError for a wrong device or size; StatusError when NCCL or the driver refuses, as when there
   * is not enough memory; VersionTooOldError below NCCL 2.19.
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
      return new NcclMemory(constructing, context, out.u64[0] ?? 0n, checked)
    } catch (error) {
      await releasePrimaryContexts(contexts)
      throw error
    } finally {
      out.dispose()
    }
  }

  /** The `CUdeviceptr`. @throws DisposedError after `free()`. */
  get address(): bigint {
    return this[memoryProtocol].address
  }

  /** Whether `free()` was called. */
  get disposed(): boolean {
    return this.#freeing !== undefined
  }

  get [memoryProtocol](): MemoryRange {
    if (this.#freeing !== undefined) throw new DisposedError({ object: 'NcclMemory' })
    return this.#range
  }

  /**
   * Waits for the work of the device and gives the memory back (`ncclMemFree`, off the JavaScript thread). Idempotent.
   * Windows and registrations over it end first.
   *
   * @throws Error while a window or a registration is open over it; StatusError when NCCL or the driver refuses.
   */
  free(): Promise<void> {
    if (this.#freeing !== undefined) return this.#freeing
    const user = registrationWithin(this.#range)
    if (user !== undefined) {
      return Promise.reject(new Error(`NcclMemory.free: ${user} is open over this memory; dispose of that first`))
    }
    this.#freeing = this.#free()
    return this.#freeing
  }

  /** The same as `free()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.free()
  }

  get [Symbol.toStringTag](): string {
    return 'NcclMemory'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `${this.#name()}${this.disposed ? ' (freed)' : ''}`
  }

  #name(): string {
    return `NcclMemory of ${this.byteLength} bytes on device ${this.device}`
  }

  async #free(): Promise<void> {
    forgetLeak(this)
    try {
      const statuses = await offThread({ context: this.#context.handle, stopOnError: false }, () => {
        cuCtxSynchronize()
        ncclMemFree(this.#range.address)
      })
      checkNccl(statuses[1] ?? 0, 'ncclMemFree')
      checkCuda(statuses[0] ?? 0, 'cuCtxSynchronize')
    } finally {
      await releasePrimaryContexts([this.#context])
    }
  }
}

interface Size {
  readonly byteLength: number
  readonly dtype: DType | undefined
  readonly length: number | undefined
}

function checkedSize(size: MemorySize, api: string): Size {
  if (typeof size === 'number') return { byteLength: positive(size, 'size', api), dtype: undefined, length: undefined }
  if (typeof size !== 'object' || size === null) {
    throw new TypeError(`${api}: size must be a number of bytes, or a dtype and a length`)
  }
  const { dtype, length } = size
  if (!dtypes.includes(dtype)) {
    throw new TypeError(`${api}: unknown dtype ${describeValue(dtype)}; one of ${dtypes.join(', ')}`)
  }
  const elements = positive(length, 'length', api)
  return { byteLength: positive(elements * dtypeInfo(dtype).bytes, 'length', api), dtype, length: elements }
}

function positive(value: unknown, parameter: string, api: string): number {
  if (typeof value !== 'number' || Number.isNaN(value)) throw new TypeError(`${api}: ${parameter} must be a number`)
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new RangeError(`${api}: ${parameter} must be a whole number from 1 to 2^53 - 1, got ${value}`)
}
