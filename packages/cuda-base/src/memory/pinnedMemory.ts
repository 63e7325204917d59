import { constants } from 'node:buffer'
import {
  forgetLeak,
  optionalBoolean,
  Resource,
  requireDType,
  requireLength,
  requireOptions,
  scratch,
  watchForLeak,
} from '@shoal/cuda-base'
import { type CUdeviceptr, cuMemFreeHost, cuMemHostAlloc, cuMemHostGetDevicePointer } from '@shoal/cuda-sys/driver'
import { type HostView, hostView } from '@shoal/ffi'
import {
  type DType,
  dtypeInfo,
  dtypeOf,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type StorageArray,
  type StorageArrayConstructor,
  type TypedArrayOf,
} from '@shoal/types'
import { type Context, type ContextSource, contextOf } from '../context.js'
import { bytesOf, type DTypeOfArray, elementsIn, requireArrayFor } from './hostArrays.js'
import { freeUnused } from './hostMemory.js'

const flags = { portable: 1, mapped: 2, writeCombined: 4 } as const

/** How page-locked memory is made. */
export interface PinnedOptions {
  /** Page-locked for every context, not only the one it was made in. Default: true. */
  readonly portable?: boolean | undefined
  /** Kernels can read and write it at `deviceAddress`. Default: false. */
  readonly mapped?: boolean | undefined
  /** Faster to send to the device, very slow for the host to read. Default: false. */
  readonly writeCombined?: boolean | undefined
}

const byArrayBuffer = new WeakMap<ArrayBufferLike, PinnedBuffer>()

/**
 * Page-locked host memory (`cuMemHostAlloc`) as a real `ArrayBuffer`: copies between it and the device do not block
 * the thread and need no staging. dispose() detaches the buffer: its arrays become empty.
 */
export class PinnedBuffer<D extends DType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'PinnedBuffer'
  readonly context: Context
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  readonly byteLength: number
  readonly #address: bigint
  readonly #array: TypedArrayOf<D>
  readonly #view: HostView | undefined
  readonly #isMapped: boolean
  #holds = 0
  #isReachable = false
  #forget: (() => void) | undefined
  #forgetMoved: (() => void) | undefined

  private constructor(context: Context, dtype: D, length: number, isMapped: boolean, address: bigint) {
    super()
    const info = dtypeInfo(dtype)
    this.context = context
    this.dtype = dtype
    this.length = length
    this.byteLength = length * info.bytes
    this.#address = address
    this.#isMapped = isMapped
    const construct: StorageArrayConstructor<D> = info.typedArray
    if (this.byteLength === 0) {
      this.#array = new construct(0)
      return
    }
    this.#view = hostView(address, this.byteLength)
    this.#array = new construct(this.#view.buffer, 0, length * info.arrayEntries)
    // Keeps this object, and so the memory, alive as long as anybody has the ArrayBuffer.
    byArrayBuffer.set(this.#view.buffer, this)
    // Resetting the device frees the memory: no array may look into it after that.
    const view = new WeakRef(this.#view)
    const { reach } = this.#view
    const forget = context._beforeClose((reason) => {
      if (reason !== 'thread-end') view.deref()?.detach()
    })
    this.#forget = forget
    this.#forgetMoved = watchMoved(context, this.#view)
    context._addChild()
    watchForLeak(this, `A PinnedBuffer of ${this.byteLength} bytes`, () => {
      forget()
      reach.whenReleased(() => freeHost(context, address))
      return 'its memory is freed now'
    })
  }

  /** Page-locked memory for `length` elements; its contents are whatever was there. */
  static allocate<D extends DType>(
    source: ContextSource,
    dtype: D,
    length: number,
    options: PinnedOptions = {},
  ): PinnedBuffer<D> {
    const context = contextOf(source)
    const { bytes } = requireDType(dtype)
    requireLength(length, 'length', bytes)
    requireOptions(options, 'options', '{ mapped }')
    const isMapped = optionalBoolean(options.mapped, 'mapped', false)
    const bits =
      (optionalBoolean(options.portable, 'portable', true) ? flags.portable : 0) |
      (isMapped ? flags.mapped : 0) |
      (optionalBoolean(options.writeCombined, 'writeCombined', false) ? flags.writeCombined : 0)
    if (length === 0) return new PinnedBuffer(context, dtype, 0, isMapped, 0n)
    if (length * bytes > constants.MAX_LENGTH) {
      throw new RangeError(
        `length is ${length}, ${length * bytes} bytes; an ArrayBuffer of this Node.js has at most ${constants.MAX_LENGTH}`,
      )
    }
    const out = scratch()
    context._call('cuMemHostAlloc', () => cuMemHostAlloc(out, length * bytes, bits))
    const address = out.u64[0] as bigint
    try {
      return new PinnedBuffer(context, dtype, length, isMapped, address)
    } catch (error) {
      freeUnused(context, address)
      throw error
    }
  }

  /** A page-locked copy of a typed array. `dtype` names what the bits of the array mean; default: its own type. */
  static from<D extends DType>(
    source: ContextSource,
    array: TypedArrayOf<D>,
    options: PinnedOptions & { readonly dtype: D },
  ): PinnedBuffer<D>
  static from<A extends StorageArray>(
    source: ContextSource,
    array: A,
    options?: PinnedOptions,
  ): PinnedBuffer<DTypeOfArray<A>>
  static from(
    source: ContextSource,
    array: StorageArray,
    options: PinnedOptions & { readonly dtype?: DType } = {},
  ): PinnedBuffer {
    requireOptions(options, 'options', '{ dtype, mapped }')
    const dtype = options.dtype ?? dtypeOf(array)
    requireArrayFor(array, dtype, 'array')
    const buffer = PinnedBuffer.allocate(source, dtype, elementsIn(array, dtype, 'array'), options)
    bytesOf(buffer.array).set(bytesOf(array))
    return buffer
  }

  /** @internal The pinned buffer a typed array looks into, if any. */
  static _behind(array: ArrayBufferView): PinnedBuffer | undefined {
    return byArrayBuffer.get(array.buffer)
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

  /** The host address. */
  get address(): bigint {
    this.#requireUsable()
    return this.#address
  }

  /** The address kernels use; only for mapped memory (`cuMemHostGetDevicePointer`). */
  get deviceAddress(): CUdeviceptr {
    this.#requireUsable()
    if (!this.#isMapped) throw new TypeError('the memory is not mapped; allocate it with { mapped: true }')
    const out = scratch()
    this.context._call('cuMemHostGetDevicePointer', () => cuMemHostGetDevicePointer(out, this.#address, 0))
    return out.u64[0] as CUdeviceptr
  }

  get [memoryProtocol](): MemoryRange {
    return {
      version: 0,
      address: this.address,
      byteLength: this.byteLength,
      device: -1,
      context: this.context._handle,
      dtype: this.dtype,
      length: this.length,
    }
  }

  get [Symbol.toStringTag](): string {
    return 'PinnedBuffer'
  }

  /** @internal A copy uses the memory: dispose() frees it only after the matching {@link _unhold}. */
  _hold(): void {
    this.#requireUsable()
    this.#holds += 1
  }

  /** @internal */
  _unhold(): void {
    this.#holds -= 1
    if (this.#holds === 0 && this._disposed) this.#free()
  }

  protected release(): void {
    forgetLeak(this)
    this.#forget?.()
    this.#isReachable = this.#view?.detach() === false
    if (!this.#isReachable) this.#forgetMoved?.()
    if (this.#holds === 0) this.#free()
  }

  #requireUsable(): void {
    this._requireAlive()
    this.context._requireAlive()
  }

  #free(): void {
    if (this.byteLength === 0) return
    const { context } = this
    const address = this.#address
    // An array that took the memory over (`buffer.transfer()`) may still be read: the memory goes when that array does.
    if (this.#isReachable) this.#view?.reach.whenReleased(() => freeHost(context, address))
    else freeHost(context, address)
  }
}

/** A moved buffer is out of reach: until it is collected, resetting the device would take memory away that is read. */
function watchMoved(context: Context, { buffer, reach }: HostView): () => void {
  const { byteLength } = buffer
  const original = new WeakRef(buffer)
  const forget = context._watchMovedMemory(() => original.deref()?.byteLength !== byteLength)
  reach.whenReleased(forget)
  return forget
}

function freeHost(context: Context, address: bigint): void {
  try {
    context._release('cuMemFreeHost', () => cuMemFreeHost(address))
  } finally {
    context._removeChild()
  }
}
