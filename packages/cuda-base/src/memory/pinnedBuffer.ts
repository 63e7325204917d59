import { constants } from 'node:buffer'
import { type HostView, hostView } from '@shoal/ffi'
import {
  type DType,
  dtypeInfo,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type StorageArrayConstructor,
  type TypedArrayOf,
} from '@shoal/types'
import { optionalBoolean, requireDType, requireLength, requireOptions } from '../checks.js'
import type { Context } from '../context.js'
import { forgetLeak, giveBackUnused, Resource, watchForLeak } from '../lifetime.js'
import { type HeldMemory, noteHeld } from './held.js'

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

/** Allocation of page-locked memory, by the functions of the driver or of the runtime. Each checks its status. */
export interface PinnedCalls {
  allocate(context: Context, byteLength: number, bits: number): bigint
  free(context: Context, address: bigint): void
  devicePointer(context: Context, address: bigint): bigint
}

/** What page-locked memory is made from, once it is there. */
export interface PinnedAllocation<D extends DType> {
  readonly context: Context
  readonly dtype: D
  readonly length: number
  readonly isMapped: boolean
  readonly address: bigint
  readonly calls: PinnedCalls
}

/** Checks the arguments, allocates, and frees again when `construct` throws. */
export function allocatePinned<D extends DType, T>(
  context: Context,
  dtype: D,
  length: number,
  options: PinnedOptions,
  calls: PinnedCalls,
  construct: (allocation: PinnedAllocation<D>) => T,
): T {
  const { bytes } = requireDType(dtype)
  requireLength(length, 'length', bytes)
  requireOptions(options, 'options', '{ mapped }')
  const isMapped = optionalBoolean(options.mapped, 'mapped', false)
  const bits =
    (optionalBoolean(options.portable, 'portable', true) ? flags.portable : 0) |
    (isMapped ? flags.mapped : 0) |
    (optionalBoolean(options.writeCombined, 'writeCombined', false) ? flags.writeCombined : 0)
  if (length === 0) return construct({ context, dtype, length, isMapped, address: 0n, calls })
  if (length * bytes > constants.MAX_LENGTH) {
    throw new RangeError(
      `length is ${length}, ${length * bytes} bytes; an ArrayBuffer of this Node.js has at most ${constants.MAX_LENGTH}`,
    )
  }
  const address = calls.allocate(context, length * bytes, bits)
  try {
    return construct({ context, dtype, length, isMapped, address, calls })
  } catch (error) {
    giveBackUnused('Page-locked memory', () => calls.free(context, address))
    throw error
  }
}

/**
 * Page-locked host memory as a real `ArrayBuffer`: copies between it and the device do not block the thread and need no
 * staging. dispose() detaches the buffer: its arrays become empty.
 */
export abstract class PinnedMemoryObject<D extends DType = DType> extends Resource implements MemoryLike, HeldMemory {
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  readonly byteLength: number
  /** @internal */
  readonly _context: Context
  readonly #address: bigint
  readonly #array: TypedArrayOf<D>
  readonly #view: HostView | undefined
  readonly #isMapped: boolean
  readonly #calls: PinnedCalls
  #holds = 0
  #isReachable = false
  #forget: (() => void) | undefined
  #forgetMoved: (() => void) | undefined

  protected constructor(what: string, { context, dtype, length, isMapped, address, calls }: PinnedAllocation<D>) {
    super()
    const info = dtypeInfo(dtype)
    this._context = context
    this.dtype = dtype
    this.length = length
    this.byteLength = length * info.bytes
    this.#address = address
    this.#isMapped = isMapped
    this.#calls = calls
    const construct: StorageArrayConstructor<D> = info.typedArray
    if (this.byteLength === 0) {
      this.#array = new construct(0)
      return
    }
    this.#view = hostView(address, this.byteLength)
    this.#array = new construct(this.#view.buffer, 0, length * info.arrayEntries)
    // Keeps this object, and so the memory, alive as long as anybody has the ArrayBuffer.
    noteHeld(this.#view.buffer, this)
    // Resetting the device frees the memory: no array may look into it after that.
    const view = new WeakRef(this.#view)
    const { reach } = this.#view
    const forget = context._beforeClose((reason) => {
      if (reason !== 'thread-end') view.deref()?.detach()
    })
    this.#forget = forget
    this.#forgetMoved = watchMoved(context, this.#view)
    context._addChild()
    watchForLeak(this, `${what} of ${this.byteLength} bytes`, () => {
      forget()
      reach.whenReleased(() => freeHost(calls, context, address))
      return 'its memory is freed now'
    })
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

  get [memoryProtocol](): MemoryRange {
    return {
      version: 0,
      address: this.address,
      byteLength: this.byteLength,
      deviceOrdinal: -1,
      context: this._context.handle,
      dtype: this.dtype,
      length: this.length,
    }
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

  protected devicePointer(): bigint {
    this.#requireUsable()
    if (!this.#isMapped) throw new TypeError('the memory is not mapped; allocate it with { mapped: true }')
    return this.#calls.devicePointer(this._context, this.#address)
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
    this._context._requireAlive()
  }

  #free(): void {
    if (this.byteLength === 0) return
    const context = this._context
    const calls = this.#calls
    const address = this.#address
    // An array that took the memory over (`buffer.transfer()`) may still be read: the memory goes when that array does.
    if (this.#isReachable) this.#view?.reach.whenReleased(() => freeHost(calls, context, address))
    else freeHost(calls, context, address)
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

function freeHost(calls: PinnedCalls, context: Context, address: bigint): void {
  try {
    calls.free(context, address)
  } finally {
    context._removeChild()
  }
}
