import type { CUdeviceptr } from '@shoal/cuda-sys/driver'
import { addressOf } from '@shoal/ffi'
import { callAtThreadEnd } from '@shoal/ffi/calls'
import {
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type OptionKeys,
  optionalBoolean,
  outOfRange,
  requireMade,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { afterCapture } from '../../core/context/capturing.js'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { afterUseOfMemory } from '../../core/inUse.js'
import { forgetLeak, Resource, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { forgetPinned, type PinnedOwner, registerPinned } from '../../core/ranges/pinnedRegistry.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'

const flags = { portable: 1, mapped: 2, readOnly: 8 } as const

/** Options of registered memory. */
export interface RegisterOptions {
  /** Page-locks the memory for every context, not only for its own. Default: true. */
  readonly portable?: boolean | undefined
  /** Lets kernels read and write the memory at `deviceAddress`. Default: false. */
  readonly mapped?: boolean | undefined
  /** Whether devices only read the memory. Default: false. */
  readonly readOnly?: boolean | undefined
}

/** Keys of {@link RegisterOptions}. */
export const registerKeys: OptionKeys<RegisterOptions> = { portable: true, mapped: true, readOnly: true }

/**
 * The program's own `ArrayBuffer`, page-locked in place (`cuMemHostRegister`, `cudaHostRegister`).
 *
 * Copies of its typed arrays then need no staging. `dispose()` unlocks the buffer and leaves its contents unchanged.
 * Page-locking takes about as long as copying the memory once, so it pays off only for memory in repeated use. Do not
 * transfer or resize the buffer while it is registered. Without `dispose()`, the buffer stays page-locked until the
 * garbage collector frees the `ArrayBuffer`, and Shoal prints a warning.
 *
 * @example
 * const weights = new Float32Array(1 << 24) // filled by other code
 * using registered = RegisteredBuffer.register(device, weights.buffer)
 * buffer.copyFrom(weights, { stream }) // as fast as from a PinnedBuffer
 */
export class RegisteredBuffer extends Resource implements MemoryLike, PinnedOwner {
  protected readonly kind = 'RegisteredBuffer'
  /** The context of the registration. */
  readonly context: Context
  /** The registered memory. */
  readonly buffer: ArrayBuffer
  /** Size in bytes. */
  readonly byteLength: number
  readonly #address: bigint
  /** @internal */
  readonly _start: U64Halves
  readonly #isMapped: boolean
  readonly #isReadOnly: boolean
  readonly #unregister: (buffer?: ArrayBuffer) => void
  #holds = 0

  private constructor(context: Context, buffer: ArrayBuffer, address: bigint, isMapped: boolean, isReadOnly: boolean) {
    requireMade(address, 'RegisteredBuffer', 'RegisteredBuffer.register')
    super()
    this.context = context
    this.buffer = buffer
    this.byteLength = buffer.byteLength
    this.#address = address
    this._start = halvesOf(address)
    this.#isMapped = isMapped
    this.#isReadOnly = isReadOnly
    registerPinned(buffer, this)
    context._addChild()
    const unregister = unregistering(context, address)
    this.#unregister = unregister
    watchForLeak(this, `A RegisteredBuffer of ${buffer.byteLength} bytes`, () => {
      unregister()
      return 'its memory is page-locked until the work of the device has ended'
    })
  }

  /**
   * Page-locks a whole `ArrayBuffer`.
   * @throws TypeError, RangeError for an empty one; StatusError when it is already registered
   */
  static register(owner: DeviceOrContext, buffer: ArrayBuffer, options: RegisterOptions = {}): RegisteredBuffer {
    const api = 'RegisteredBuffer.register'
    const context = contextOf(owner, api)
    if (!isArrayBuffer(buffer)) throw wrongType(api, 'buffer', 'an ArrayBuffer', buffer)
    requireOptions(options, api, registerKeys)
    if (buffer.byteLength === 0) throw outOfRange(api, 'buffer', 'at least one byte, and not detached', 0)
    const isMapped = optionalBoolean(options.mapped, api, 'mapped', false)
    const isReadOnly = optionalBoolean(options.readOnly, api, 'readOnly', false)
    const bits =
      (optionalBoolean(options.portable, api, 'portable', true) ? flags.portable : 0) |
      (isMapped ? flags.mapped : 0) |
      (isReadOnly ? flags.readOnly : 0)
    const address = addressOf(buffer)
    context._callWithRoom(buffer.byteLength, 'memHostRegister', address, buffer.byteLength, bits)
    return new RegisteredBuffer(context, buffer, address, isMapped, isReadOnly)
  }

  /** The device of the registration. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** The host address. @throws DisposedError */
  get address(): bigint {
    this.#requireUsable()
    return this.#address
  }

  /**
   * The address for kernels (`cuMemHostGetDevicePointer`, `cudaHostGetDevicePointer`).
   * @throws TypeError for memory that is not mapped; DisposedError
   */
  get deviceAddress(): CUdeviceptr {
    this.#requireUsable()
    if (!this.#isMapped) {
      throw new TypeError(
        'RegisteredBuffer.deviceAddress: the memory must be mapped; register it with { mapped: true }',
      )
    }
    const out = scratch()
    this.context._call('memHostGetDevicePointer', out, this.#address, 0)
    return out.u64[0] as CUdeviceptr
  }

  get [memoryProtocol](): MemoryRange {
    return {
      version: 0,
      address: this.address,
      byteLength: this.byteLength,
      deviceOrdinal: -1,
      context: this.context.handle,
      ...(this.#isReadOnly ? { readOnly: true } : {}),
    }
  }

  /** @internal Keeps the memory for a copy: dispose() unlocks it only after the matching {@link _unhold}. */
  _hold(): void {
    this.#requireUsable()
    this.#holds += 1
  }

  /** @internal */
  _unhold(): void {
    this.#holds -= 1
    if (this.#holds === 0 && this._disposed) this.#unlock()
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal, byteLength: this.byteLength }
  }

  protected release(): void {
    forgetLeak(this)
    forgetPinned(this.buffer)
    if (this.#holds === 0) this.#unlock()
  }

  #requireUsable(): void {
    this._requireAlive()
    this.context._requireAlive()
    if (this.buffer.byteLength !== this.byteLength) {
      throw new TypeError(
        'RegisteredBuffer: buffer must be unchanged since its registration, not transferred or resized',
      )
    }
  }

  #unlock(): void {
    const { buffer } = this
    afterUseOfMemory('A RegisteredBuffer', this.#address, this.byteLength, () => this.#unregister(buffer))
  }
}

/** Whether a value is a real ArrayBuffer, whatever its prototype is. */
function isArrayBuffer(value: unknown): value is ArrayBuffer {
  try {
    getByteLength.call(value as ArrayBuffer)
    return true
  } catch {
    return false
  }
}

const getByteLength = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength')?.get as (
  this: ArrayBuffer,
) => number

/**
 * Returns a function that unregisters the memory. It also runs when the thread ends, because the thread's memory is
 * freed then: the addresses would stay page-locked for whatever memory gets them next.
 */
function unregistering(context: Context, address: bigint): (buffer?: ArrayBuffer) => void {
  const what = 'A RegisteredBuffer'
  const forget = callAtThreadEnd(() => context._release('memHostUnregister', address))
  return (buffer) =>
    afterCapture(what, () =>
      context._releases.add(what, [context._releaseCall('memHostUnregister', address)], () => {
        // Keep the buffer alive until here.
        void buffer
        forget()
        context._removeChild()
      }),
    )
}
