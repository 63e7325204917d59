import {
  CUdevice_attribute,
  type CUdeviceptr,
  type CUmem_advise,
  CUmem_range_attribute,
  CUmemLocation,
  CUmemLocationType,
  cuDeviceGetCount,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import {
  type DeviceLike,
  type DType,
  type ElementType,
  elementLayout,
  FeatureNotSupportedError,
  isDeviceLike,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type OptionKeys,
  outOfRange,
  requireInteger,
  requireKeyOf,
  requireMade,
  requireOneOf,
  requireOptions,
  toDeviceOrdinal,
} from '@shoal/types'
import { afterCapture } from '../../core/context/capturing.js'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { keepCaptured } from '../../core/context/keptByCaptures.js'
import { check, Status } from '../../core/errors.js'
import { afterUseOfMemory } from '../../core/inUse.js'
import { forgetLeak, Resource, releaseAfterFailure, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { requireStream, type Stream, streamFor } from '../../core/stream/stream.js'
import { type HostNode, type MemoryLocation, resolvePlace } from '../vmm/location.js'
import { DeviceBuffer } from './deviceBuffer.js'
import type { QueueOptions } from './deviceTransfers.js'
import { type HostArrayOf, nameOfType, requireElementType } from './elementType.js'
import { ContextArray } from './hostMemory.js'

/** Initial users of managed memory: every device, or only the host until it is attached to a stream. */
export type ManagedAttachment = 'global' | 'host'

/** Options of new managed memory. */
export interface ManagedOptions {
  /** Initial users of the memory. Default: `'global'`. */
  readonly attach?: ManagedAttachment | undefined
}

export const managedKeys: OptionKeys<ManagedOptions> = { attach: true }

/** Location of managed memory: a device, the host, or a NUMA node of the host. */
export type ManagedPlace = DeviceLike | number | 'host' | HostNode

/** Advice about the use of managed memory. */
export type ManagedAdvice = 'readMostly' | 'preferredLocation' | 'accessedBy'

/** The driver's state of advice and prefetches. */
export interface ManagedAttributes {
  /** Whether the memory is mostly read, so that each device may have a copy. */
  readonly readMostly: boolean
  /** Preferred location; undefined if there is none, or if it differs within the memory. */
  readonly preferredLocation: MemoryLocation | undefined
  /** Ordinals of the accessing devices; -1 is the host. */
  readonly accessedBy: readonly number[]
  /** Location of the last prefetch of the whole memory; undefined without one. */
  readonly lastPrefetchLocation: MemoryLocation | undefined
}

/** `CUmemAttach_flags`. libcudart uses the same numbers. */
const attachments = { global: 1, host: 2, single: 4 } as const

/** `CUmem_advise`: the codes that give and withdraw each advice. libcudart uses the same numbers. */
const advices: { readonly [A in ManagedAdvice]: readonly [give: number, takeBack: number] } = {
  readMostly: [1, 2],
  preferredLocation: [3, 4],
  accessedBy: [5, 6],
}

const {
  CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: readMostly,
  CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: accessedBy,
  CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: preferred,
  CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: prefetched,
} = CUmem_range_attribute

const largestView = 2 ** 32

/**
 * Memory that migrates between host and devices automatically (`cuMemAllocManaged`, `cudaMallocManaged`).
 *
 * The host uses the memory as a real `ArrayBuffer`, devices use it as device memory. The host sees a kernel's writes
 * after the kernel completes. dispose() detaches the `ArrayBuffer`.
 *
 * @example
 * using values = ManagedBuffer.allocate(device, 'f32', 1024)
 * values.array.fill(1)
 * kernel.launch({ grid: 4, block: 256, stream }, values)
 * await stream.synchronize()
 * console.log(values.array[0])
 */
export class ManagedBuffer<E extends ElementType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'ManagedBuffer'
  /** Type of the elements. */
  readonly dtype: E
  /** Number of elements. */
  readonly length: number
  /** Size of all elements in bytes. */
  readonly byteLength: number
  /** The context that created the memory. */
  readonly context: Context
  readonly #address: bigint
  readonly #memory: ContextArray<E>
  /** Ends the use of another owner's variable. */
  readonly #end: (() => void) | undefined
  #buffer: DeviceBuffer<E> | undefined

  private constructor(
    context: Context,
    dtype: E,
    length: number,
    byteLength: number,
    address: bigint,
    end?: () => void,
  ) {
    requireMade(address, 'ManagedBuffer', 'ManagedBuffer.allocate')
    super()
    this.context = context
    this.dtype = dtype
    this.length = length
    this.byteLength = byteLength
    this.#address = address
    this.#memory = new ContextArray(context, address, byteLength, dtype, length)
    this.#end = end
    if (end !== undefined) return
    context._addChild()
    const { releaser } = this.#memory
    watchForLeak(this, `A ManagedBuffer of ${byteLength} bytes`, () => {
      releaser(() => freeManaged(context, address))
      return 'it is freed now'
    })
  }

  /**
   * Allocates uninitialized managed memory for `length` elements, at least one.
   * @throws FeatureNotSupportedError when the host must not access such memory while the device is busy, unless the
   * memory is attached to the host; TypeError, RangeError, StatusError
   */
  static allocate<E extends ElementType>(
    owner: DeviceOrContext,
    dtype: E,
    length: number,
    options: ManagedOptions = {},
  ): ManagedBuffer<E> {
    const api = 'ManagedBuffer.allocate'
    const context = contextOf(owner, api)
    const { bytes } = requireElementType(dtype, api)
    const byteLength = requireInteger(length, api, 'length', 1, Math.floor(largestView / bytes)) * bytes
    requireOptions(options, api, managedKeys)
    const { attach = 'global' } = options
    requireOneOf(attach, api, 'attach', ['global', 'host'])
    if (attach === 'global') requireConcurrentAccess(context, api)
    const out = scratch()
    context._callWithRoom(byteLength, 'memAllocManaged', out, byteLength, attachments[attach])
    const address = out.u64[0] as CUdeviceptr
    try {
      return new ManagedBuffer(context, dtype, length, byteLength, address)
    } catch (error) {
      releaseAfterFailure('A ManagedBuffer', () => context._release('memFree', address))
      throw error
    }
  }

  /** @internal Wraps a managed variable. Calls `end` when no array uses it any more. */
  static _ofVariable<E extends ElementType>(
    context: Context,
    dtype: E,
    length: number,
    address: bigint,
    end: () => void,
  ): ManagedBuffer<E> {
    return new ManagedBuffer(context, dtype, length, length * elementLayout(dtype).bytes, address, end)
  }

  /** The device of the memory. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** The address, which is the same on the host and the devices. @throws DisposedError */
  get address(): bigint {
    this.#requireUsable()
    return this.#address
  }

  /** The elements. Reads and writes access the memory itself. @throws DisposedError */
  get array(): HostArrayOf<E> {
    this.#requireUsable()
    return this.#memory.array
  }

  /** The memory as an `ArrayBuffer`. @throws DisposedError */
  get buffer(): ArrayBuffer {
    this.#requireUsable()
    return this.#memory.buffer
  }

  /** The elements as device memory, for copies, fills and kernels. Valid until dispose(). */
  get memory(): DeviceBuffer<E> {
    this.#requireUsable()
    this.#buffer ??= DeviceBuffer.view(this.context, this, this.dtype, { length: this.length })
    return this.#buffer
  }

  /**
   * Advises the driver about the use of the memory (`cuMemAdvise`, `cudaMemAdvise`).
   * @param place required except for `'readMostly'`
   * @throws TypeError, RangeError for an invalid place; StatusError
   */
  advise(advice: ManagedAdvice, place?: ManagedPlace): this {
    return this.#advise(advice, 0, place, 'ManagedBuffer.advise')
  }

  /** Withdraws advice (`cuMemAdvise`, `cudaMemAdvise`). @throws as {@link advise} */
  unadvise(advice: ManagedAdvice, place?: ManagedPlace): this {
    return this.#advise(advice, 1, place, 'ManagedBuffer.unadvise')
  }

  /** Queues the migration of the memory to a device or the host (`cuMemPrefetchAsync`, `cudaMemPrefetchAsync`). */
  prefetch(place: ManagedPlace, options: QueueOptions = {}): this {
    const api = 'ManagedBuffer.prefetch'
    requireOptions<QueueOptions>(options, api, { stream: true })
    const { context, byteLength } = this
    const address = this.address as CUdeviceptr
    const location = managedLocation(place, api)
    const stream = streamFor(context, options.stream, api)
    context._call('memPrefetchAsync', address, byteLength, location, 0, stream)
    keepCaptured(context._handle, stream, [this])
    return this
  }

  /**
   * Attaches the memory to this stream only, to the host, or to all devices, in stream order (`cuStreamAttachMemAsync`,
   * `cudaStreamAttachMemAsync`).
   */
  attachTo(stream: Stream, attachment: ManagedAttachment | 'single' = 'single'): this {
    const api = 'ManagedBuffer.attachTo'
    requireStream(stream, api)
    const bits = requireKeyOf(attachment, api, 'attachment', attachments)
    const { context } = this
    const address = this.address as CUdeviceptr
    const queue = streamFor(context, stream, api)
    context._call('streamAttachMemAsync', queue, address, 0, bits)
    keepCaptured(context._handle, queue, [this])
    return this
  }

  /** State of advice and prefetches (`cuMemRangeGetAttribute`, `cudaMemRangeGetAttribute`). */
  get attributes(): ManagedAttributes {
    const out = scratch()
    check(cuDeviceGetCount(out), 'cuDeviceGetCount')
    // The list can hold every device and the host.
    const count = (out.i32[0] as number) + 1
    return {
      readMostly: this.#attribute(readMostly, 1)[0] !== 0,
      preferredLocation: locationAt(this.#attribute(preferred, 1)[0] as number),
      accessedBy: this.#attribute(accessedBy, count).filter((ordinal) => ordinal >= -1),
      lastPrefetchLocation: locationAt(this.#attribute(prefetched, 1)[0] as number),
    }
  }

  get [memoryProtocol](): MemoryRange {
    const { length, context } = this
    const dtype: ElementType = this.dtype
    return {
      version: 0,
      address: this.address,
      byteLength: this.byteLength,
      deviceOrdinal: context.device.ordinal,
      context: context._handle,
      ...(typeof dtype === 'string' ? { dtype, length } : {}),
    }
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { dtype: nameOfType(this.dtype), length: this.length, device: this.context.device.ordinal }
  }

  /** Frees the memory when the device's work completes (`cuMemFree`, `cudaFree`). */
  protected release(): void {
    forgetLeak(this)
    const { context, byteLength } = this
    const address = this.#address
    const free = this.#end ?? ((): void => freeManaged(context, address))
    this.#memory.detach().whenUnreachable(() => afterUseOfMemory('A ManagedBuffer', address, byteLength, free))
  }

  #requireUsable(): void {
    this._requireAlive()
    this.context._requireAlive()
  }

  #advise(advice: ManagedAdvice, which: 0 | 1, place: ManagedPlace | undefined, api: string): this {
    const code = requireKeyOf(advice, api, 'advice', advices)[which] as CUmem_advise
    const needsPlace = advice === 'accessedBy' || (advice === 'preferredLocation' && which === 0)
    const location = managedLocation(place === undefined && !needsPlace ? this.context.device.ordinal : place, api)
    this.context._call('memAdvise', this.address as CUdeviceptr, this.byteLength, code, location)
    return this
  }

  #attribute(attribute: CUmem_range_attribute, count: number): number[] {
    const { context, byteLength } = this
    const out = NativeMemory.allocate(count * 4)
    context._call('memRangeGetAttribute', out, count * 4, attribute, this.address as CUdeviceptr, byteLength)
    return [...out.i32.subarray(0, count)]
  }
}

function requireConcurrentAccess(context: Context, api: string): void {
  const out = scratch()
  const { device, _cuda: cuda } = context
  const code = CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS
  const status = context._status('deviceGetAttribute', out, code, cuda.deviceArgument(device) as typeof device.handle)
  if (status !== Status.success) throw context._error(status, 'deviceGetAttribute')
  if (out.i32[0] !== 0) return
  throw new FeatureNotSupportedError({
    library: `NVIDIA CUDA ${cuda.name}`,
    api: `${api} of memory that host and device use at once`,
    reason: `device ${device.ordinal} does not have the attribute CONCURRENT_MANAGED_ACCESS; use { attach: 'host' }`,
  })
}

function freeManaged(context: Context, address: bigint): void {
  const what = 'A ManagedBuffer'
  const calls = [context._releaseCall('ctxSynchronize'), context._releaseCall('memFree', address as CUdeviceptr)]
  afterCapture(what, () => context._releases.add(what, calls, () => context._removeChild()))
}

/** Encodes a `CUmemLocation`. @throws TypeError, RangeError */
export function managedLocation(place: ManagedPlace | undefined, api: string, name = 'place'): Uint8Array {
  if (typeof place === 'number' || isDeviceLike(place)) {
    const id = toDeviceOrdinal(place, api, name)
    const out = scratch()
    check(cuDeviceGetCount(out), 'cuDeviceGetCount')
    const count = out.i32[0] as number
    if (id >= count) throw outOfRange(api, name, `the ordinal of one of the ${count} devices`, id)
    return CUmemLocation.allocate({ type: CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id })
  }
  const { type, id } = resolvePlace(place as 'host' | HostNode, api, name)
  return CUmemLocation.allocate({ type, id })
}

function locationAt(ordinal: number): MemoryLocation | undefined {
  if (ordinal >= 0) return { type: 'device', deviceOrdinal: ordinal }
  return ordinal === -1 ? { type: 'host' } : undefined
}
