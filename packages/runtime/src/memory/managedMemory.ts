import {
  type Context,
  forgetLeak,
  giveBackUnused,
  type MemoryLocation,
  Resource,
  requireDType,
  requireInteger,
  requireLength,
  requireOptions,
  scratch,
  watchForLeak,
} from '@shoal/cuda-base'
import {
  cudaDeviceSynchronize,
  cudaFree,
  cudaMallocManaged,
  cudaMemAdvise,
  cudaMemAttachGlobal,
  cudaMemAttachHost,
  cudaMemAttachSingle,
  cudaMemLocation,
  cudaMemLocationType,
  cudaMemoryAdvise,
  cudaMemPrefetchAsync,
  cudaMemRangeAttribute,
  cudaMemRangeGetAttribute,
  cudaStreamAttachMemAsync,
} from '@shoal/cuda-sys/runtime'
import { type HostView, hostView, NativeMemory } from '@shoal/ffi'
import {
  type DeviceLike,
  type DType,
  describeValue,
  dtypeInfo,
  FeatureNotSupportedError,
  isDeviceLike,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type StorageArrayConstructor,
  type TypedArrayOf,
} from '@shoal/types'
import { deviceOrCurrent } from '../currentDevice.js'
import { Device } from '../device.js'
import { callOn, releaseOn } from '../start.js'
import { requireStream, type Stream, streamFor } from '../stream.js'
import { DeviceMemory, type DeviceOption, type QueueOptions } from './deviceMemory.js'

/** Who may use managed memory at first: every device, or the host until it is attached to a stream. */
export type ManagedAttachment = 'global' | 'host'

/** How managed memory is made. */
export interface ManagedOptions extends DeviceOption {
  /** Default: `'global'`. */
  readonly attach?: ManagedAttachment | undefined
}

/** Where managed memory is to be: a device, the host, or a NUMA node of the host. */
export type ManagedPlace = DeviceLike | number | 'host' | { readonly hostNode: number | 'current' }

/** What is said of how managed memory will be used. */
export type ManagedAdvice = 'readMostly' | 'preferredLocation' | 'accessedBy'

/** What the driver keeps of advice and prefetches. */
export interface ManagedAttributes {
  readonly readMostly: boolean
  /** Undefined where none was advised, or not the same for all of it. */
  readonly preferredLocation: MemoryLocation | undefined
  /** Ordinals of devices; -1 is the host. */
  readonly accessedBy: readonly number[]
  readonly lastPrefetchLocation: MemoryLocation | undefined
}

const attachments = { global: cudaMemAttachGlobal, host: cudaMemAttachHost, single: cudaMemAttachSingle } as const

const advices = {
  readMostly: [cudaMemoryAdvise.cudaMemAdviseSetReadMostly, cudaMemoryAdvise.cudaMemAdviseUnsetReadMostly],
  preferredLocation: [
    cudaMemoryAdvise.cudaMemAdviseSetPreferredLocation,
    cudaMemoryAdvise.cudaMemAdviseUnsetPreferredLocation,
  ],
  accessedBy: [cudaMemoryAdvise.cudaMemAdviseSetAccessedBy, cudaMemoryAdvise.cudaMemAdviseUnsetAccessedBy],
} as const

const largestView = 2 ** 32

/**
 * Memory that moves between the host and the devices by itself (`cudaMallocManaged`): a real `ArrayBuffer` here, and
 * device memory there. What work in flight writes is seen once that work has ended. dispose() detaches the buffer.
 */
export class ManagedMemory<D extends DType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'ManagedMemory'
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  readonly byteLength: number
  readonly context: Context
  readonly #address: bigint
  readonly #array: TypedArrayOf<D>
  readonly #view: HostView
  readonly #forget: () => void
  readonly #forgetMoved: () => void
  #memory: DeviceMemory<D> | undefined

  private constructor(context: Context, dtype: D, length: number, address: bigint) {
    super()
    const info = dtypeInfo(dtype)
    this.context = context
    this.dtype = dtype
    this.length = length
    this.byteLength = length * info.bytes
    this.#address = address
    this.#view = hostView(address, this.byteLength)
    const construct: StorageArrayConstructor<D> = info.typedArray
    this.#array = new construct(this.#view.buffer, 0, length * info.arrayEntries)
    const view = new WeakRef(this.#view)
    const { reach } = this.#view
    // A reset frees the memory: no array may look into it after that.
    const forget = context._beforeClose((reason) => {
      if (reason !== 'thread-end') view.deref()?.detach()
    })
    this.#forget = forget
    const original = new WeakRef(this.#view.buffer)
    const { byteLength } = this
    this.#forgetMoved = context._watchMovedMemory(() => original.deref()?.byteLength !== byteLength)
    reach.whenReleased(this.#forgetMoved)
    context._addChild()
    watchForLeak(this, `ManagedMemory of ${byteLength} bytes`, () => {
      forget()
      reach.whenReleased(() => freeManaged(context, address))
      return 'it is freed now'
    })
  }

  /**
   * Managed memory for `length` elements, at least one; its contents are whatever was there.
   * @throws FeatureNotSupportedError on devices where the host must not touch such memory while the device is busy, unless
   * it is attached to the host; RangeError, StatusError.
   */
  static allocate<D extends DType>(dtype: D, length: number, options: ManagedOptions = {}): ManagedMemory<D> {
    const { bytes } = requireDType(dtype)
    requireLength(length, 'length', bytes)
    requireInteger(length * bytes, 'the number of bytes', 1, largestView)
    requireOptions(options, 'options', '{ attach }')
    const { attach = 'global' } = options
    if (attach !== 'global' && attach !== 'host') {
      throw new TypeError(`attach must be 'global' or 'host', not ${describeValue(attach)}`)
    }
    const device = deviceOrCurrent(options.device)
    if (attach === 'global' && device.attribute('ConcurrentManagedAccess') === 0) {
      throw new FeatureNotSupportedError({
        library: 'NVIDIA CUDA runtime',
        api: 'managed memory that host and device use at once',
        reason: `device ${device.ordinal} does not have the attribute ConcurrentManagedAccess; use { attach: 'host' }`,
      })
    }
    const { primaryContext } = device
    const out = scratch()
    callOn(primaryContext, 'cudaMallocManaged', () => cudaMallocManaged(out, length * bytes, attachments[attach]))
    const address = out.u64[0] as bigint
    try {
      return new ManagedMemory(primaryContext, dtype, length, address)
    } catch (error) {
      giveBackUnused('ManagedMemory', () => releaseOn(primaryContext, 'cudaFree', () => cudaFree(address)))
      throw error
    }
  }

  get device(): Device {
    return this.context.device as Device
  }

  /** The address, the same on the host and the devices. @throws DisposedError */
  get address(): bigint {
    this.#requireUsable()
    return this.#address
  }

  /** The elements: reads and writes reach the memory itself. */
  get array(): TypedArrayOf<D> {
    this.#requireUsable()
    return this.#array
  }

  /** The memory as an `ArrayBuffer`. */
  get buffer(): ArrayBuffer {
    return this.array.buffer as ArrayBuffer
  }

  /** The elements as device memory, for copies, fills and kernels; until dispose(). */
  get memory(): DeviceMemory<D> {
    this.#requireUsable()
    this.#memory ??= DeviceMemory.view(this, this.dtype, { length: this.length })
    return this.#memory
  }

  /**
   * Says how the memory will be used (`cudaMemAdvise`). @param place Needed for all but `'readMostly'`.
   * @throws TypeError, RangeError for what is no place; StatusError.
   */
  advise(advice: ManagedAdvice, place?: ManagedPlace): this {
    return this.#advise(advice, 0, place)
  }

  /** Takes advice back (`cudaMemAdvise`). */
  unadvise(advice: ManagedAdvice, place?: ManagedPlace): this {
    return this.#advise(advice, 1, place)
  }

  /** Queues the move of the memory to a device or to the host (`cudaMemPrefetchAsync`). */
  prefetch(place: ManagedPlace, options: QueueOptions = {}): this {
    requireOptions(options, 'options', '{ stream }')
    const { address, context, byteLength } = this
    const location = locationBytes(place)
    const stream = streamFor(context, options.stream)
    callOn(context, 'cudaMemPrefetchAsync', () => cudaMemPrefetchAsync(address, byteLength, location, 0, stream))
    return this
  }

  /**
   * Attaches the memory, when the stream gets there, to that stream alone, to the host, or to all devices
   * (`cudaStreamAttachMemAsync`).
   */
  attachTo(stream: Stream, attachment: ManagedAttachment | 'single' = 'single'): this {
    requireStream(stream)
    if (typeof attachment !== 'string' || !Object.hasOwn(attachments, attachment)) {
      throw new TypeError(`attachment must be 'single', 'global' or 'host', not ${describeValue(attachment)}`)
    }
    const { address, context } = this
    const handle = streamFor(context, stream)
    const flags = attachments[attachment]
    callOn(context, 'cudaStreamAttachMemAsync', () => cudaStreamAttachMemAsync(handle, address, 0, flags))
    return this
  }

  /** What the driver keeps of advice and prefetches (`cudaMemRangeGetAttribute`). */
  get attributes(): ManagedAttributes {
    const {
      cudaMemRangeAttributeReadMostly: readMostly,
      cudaMemRangeAttributeAccessedBy: accessedBy,
      cudaMemRangeAttributePreferredLocation: preferred,
      cudaMemRangeAttributeLastPrefetchLocation: prefetched,
    } = cudaMemRangeAttribute
    const devices = this.#attribute(accessedBy, Device.count + 1)
    return {
      readMostly: this.#attribute(readMostly, 1)[0] !== 0,
      preferredLocation: placeOf(this.#attribute(preferred, 1)[0] as number),
      accessedBy: devices.filter((ordinal) => ordinal >= -1),
      lastPrefetchLocation: placeOf(this.#attribute(prefetched, 1)[0] as number),
    }
  }

  get [memoryProtocol](): MemoryRange {
    return {
      version: 0,
      address: this.address,
      byteLength: this.byteLength,
      deviceOrdinal: this.context.device.ordinal,
      context: this.context._handle,
      dtype: this.dtype,
      length: this.length,
    }
  }

  get [Symbol.toStringTag](): string {
    return 'ManagedMemory'
  }

  /** Frees it (`cudaFree`): blocks until the work that uses it has ended. */
  protected release(): void {
    forgetLeak(this)
    this.#forget()
    const { context } = this
    const address = this.#address
    // Work in flight may still use what the array lets go of.
    releaseOn(context, 'cudaDeviceSynchronize', () => cudaDeviceSynchronize())
    if (this.#view.detach()) {
      this.#forgetMoved()
      freeManaged(context, address)
    } else {
      // An array that took the memory over (`buffer.transfer()`) may still be read: the memory goes when that array does.
      this.#view.reach.whenReleased(() => freeManaged(context, address))
    }
  }

  #requireUsable(): void {
    this._requireAlive()
    this.context._requireAlive()
  }

  #advise(advice: ManagedAdvice, which: 0 | 1, place: ManagedPlace | undefined): this {
    if (typeof advice !== 'string' || !Object.hasOwn(advices, advice)) {
      throw new TypeError(`advice must be one of ${Object.keys(advices).join(', ')}, not ${describeValue(advice)}`)
    }
    const needsPlace = advice === 'accessedBy' || (advice === 'preferredLocation' && which === 0)
    const location = locationBytes(place ?? (needsPlace ? undefined : this.device))
    const { address, context, byteLength } = this
    const code = advices[advice][which]
    callOn(context, 'cudaMemAdvise', () => cudaMemAdvise(address, byteLength, code, location))
    return this
  }

  #attribute(attribute: cudaMemRangeAttribute, count: number): number[] {
    const { address, context, byteLength } = this
    const out = NativeMemory.allocate(count * 4)
    callOn(context, 'cudaMemRangeGetAttribute', () =>
      cudaMemRangeGetAttribute(out, count * 4, attribute, address, byteLength),
    )
    return [...out.i32.subarray(0, count)]
  }
}

function freeManaged(context: Context, address: bigint): void {
  try {
    releaseOn(context, 'cudaFree', () => cudaFree(address))
  } finally {
    context._removeChild()
  }
}

function locationBytes(place: ManagedPlace | undefined): Uint8Array {
  const { cudaMemLocationTypeDevice, cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma } = cudaMemLocationType
  if (place === 'host') return cudaMemLocation.allocate({ type: cudaMemLocationTypeHost, id: 0 })
  if (typeof place === 'number' || isDeviceLike(place)) {
    return cudaMemLocation.allocate({ type: cudaMemLocationTypeDevice, id: Device.from(place).ordinal })
  }
  if (typeof place !== 'object' || place === null || !('hostNode' in place)) {
    throw new TypeError(`place must be a device, 'host' or { hostNode }, not ${describeValue(place)}`)
  }
  const { hostNode } = place
  if (hostNode === 'current') {
    return cudaMemLocation.allocate({ type: cudaMemLocationType.cudaMemLocationTypeHostNumaCurrent, id: 0 })
  }
  const id = requireInteger(hostNode, 'place.hostNode', 0, 0x7fff_ffff)
  return cudaMemLocation.allocate({ type: cudaMemLocationTypeHostNuma, id })
}

function placeOf(ordinal: number): MemoryLocation | undefined {
  if (ordinal >= 0) return { type: 'device', deviceOrdinal: ordinal }
  return ordinal === -1 ? { type: 'host' } : undefined
}
