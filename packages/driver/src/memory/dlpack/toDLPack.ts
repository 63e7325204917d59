import { createTensor, deleteTensor } from '@shoal/ffi/calls'
import {
  DisposedError,
  type MemoryLike,
  type OptionKeys,
  optionalBoolean,
  optionalOptions,
  outOfRange,
  requireKeyOf,
  requireMade,
  type StreamLike,
  toStreamHandle,
  toStridedRange,
  wrongType,
} from '@shoal/types'
import { Resource } from '../../core/lifetime.js'
import { orderBehind } from '../../core/stream/orderBehind.js'
import { heldOnceAsked } from '../../core/waiting/heldOnceAsked.js'
import { deviceTypeCodes, type TensorDeviceType, typeWord } from './tensorTypes.js'

/** Options of a new DLPack tensor. */
export interface ToDLPackOptions {
  /**
   * The consumer's stream, which waits for pending work on the memory. Required if such work exists, because a tensor
   * cannot carry this information.
   */
  readonly stream?: StreamLike | undefined
  /** Creates a `DLManagedTensorVersioned` of DLPack 1.x instead of a `DLManagedTensor`. Default: false. */
  readonly versioned?: boolean | undefined
  /**
   * Default: `cuda` for device memory, `cudaHost` for host memory. The memory protocol does not distinguish managed
   * memory from device memory.
   */
  readonly deviceType?: TensorDeviceType | undefined
}

const keys: OptionKeys<ToDLPackOptions> = { stream: true, versioned: true, deviceType: true }
/** Value of `DLPACK_FLAG_BITMASK_READ_ONLY`. */
const readOnlyFlag = 1n

/** Calls the deleters of tensors that were neither taken nor disposed of, because nothing else would. */
const untaken = new FinalizationRegistry<{ readonly address: bigint; readonly versioned: boolean }>(
  ({ address, versioned }) => deleteTensor(address, versioned),
)

/**
 * A DLPack tensor for other code: the same pointer that Python capsules contain.
 *
 * The tensor belongs to this object until {@link take}. The new owner then calls the tensor's deleter, from any thread.
 * If the tensor is never taken, `dispose()` or the collector calls the deleter. Created by {@link toDLPack}.
 */
export class DLPackCapsule extends Resource {
  protected readonly kind = 'DLPackCapsule'
  /** Whether the pointer is a `DLManagedTensorVersioned` instead of a `DLManagedTensor`. */
  readonly versioned: boolean
  readonly #address: bigint
  /** The deleter's callback holds this state instead of the capsule, which may be collected first. */
  readonly #released: () => Promise<void>
  #isTaken = false

  /** @internal */
  constructor(make: (onDelete: () => void) => bigint, versioned: boolean) {
    requireMade(versioned, 'DLPackCapsule', 'toDLPack', 'boolean')
    super()
    const { promise, resolve } = withResolvers()
    this.#released = heldOnceAsked(promise)
    this.versioned = versioned
    this.#address = make(resolve)
    untaken.register(this, { address: this.#address, versioned }, this)
  }

  /**
   * Resolves when the deleter was called, so the memory is no longer used through this tensor. Reading this property
   * keeps the process alive until then.
   */
  get released(): Promise<void> {
    return this.#released()
  }

  /** Whether the tensor was taken. */
  get taken(): boolean {
    return this.#isTaken
  }

  /**
   * Returns the address of the tensor for an addon, which becomes the owner. The new owner must call the tensor's
   * deleter.
   * @throws DisposedError; TypeError when it was already taken
   */
  take(): bigint {
    return this._take('DLPackCapsule.take')
  }

  /** @internal Hands the tensor over. Errors name the function `api`. */
  _take(api: string): bigint {
    this._peek(api)
    this.#isTaken = true
    untaken.unregister(this)
    return this.#address
  }

  /** @internal Returns the address without taking the tensor. @throws as {@link take} */
  _peek(api: string): bigint {
    if (this.#isTaken) throw new TypeError(`${api}: the tensor must be taken once, and was taken before`)
    if (this.disposed) throw new DisposedError({ object: this.kind, operation: api })
    return this.#address
  }

  /** Calls the deleter, unless the tensor was taken. */
  protected release(): void {
    if (this.#isTaken) return
    untaken.unregister(this)
    deleteTensor(this.#address, this.versioned)
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { versioned: this.versioned, taken: this.#isTaken }
  }
}

function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

/**
 * Creates a DLPack tensor of memory, without a copy, for addons and libraries.
 *
 * Shoal keeps the memory's object until the consumer has called the deleter. Do not dispose of the object before
 * `capsule.released` resolves.
 * @throws TypeError for a value that is not memory or has no dtype, for read-only memory unless `versioned`, and for
 * pending work on the memory without `stream`; DisposedError; FeatureNotSupportedError without the native addon
 *
 * @example
 * addon.consume(toDLPack(buffer, { stream }).take())
 */
export function toDLPack(memory: MemoryLike, options?: ToDLPackOptions): DLPackCapsule {
  const api = 'toDLPack'
  const { stream, versioned, deviceType } = optionalOptions(options, api, keys)
  const isVersioned = optionalBoolean(versioned, api, 'versioned', false)
  const range = toStridedRange(memory, api)
  const isHost = range.deviceOrdinal < 0
  const type: TensorDeviceType = deviceType === undefined ? (isHost ? 'cudaHost' : 'cuda') : deviceType
  const code = requireKeyOf(type, api, 'deviceType', deviceTypeCodes)
  if ((type === 'cuda' && isHost) || (type === 'cpu' && !isHost)) {
    throw outOfRange(api, 'deviceType', `one of memory of ${isHost ? 'the host' : 'a device'}`, type)
  }
  if (range.readOnly === true && !isVersioned) {
    throw wrongType(api, 'versioned', 'true for read-only memory, which a DLManagedTensor cannot be', versioned)
  }
  if (stream === null) throw wrongType(api, 'stream', 'a stream', stream)
  if (stream !== undefined) {
    const { handle, context } = toStreamHandle(stream, api)
    orderBehind(handle, context === 0n ? range.context : context, range)
  } else if (range.stream !== undefined && range.stream !== null) {
    throw wrongType(api, 'stream', 'named, as work is pending on the memory', stream)
  }
  const fields = {
    data: range.length === 0 ? 0n : range.address,
    deviceType: code,
    // DLPack assigns page-locked memory to the first device. The host is device 0 too.
    deviceId: isHost ? 0 : range.deviceOrdinal,
    type: typeWord(range.dtype),
    shape: range.shape,
    strides: range.strides,
    flags: isVersioned ? (range.readOnly === true ? readOnlyFlag : 0n) : undefined,
  }
  // The callback holds the memory until the deleter was called.
  return new DLPackCapsule((onDelete) => {
    const kept = { memory }
    return createTensor(fields, () => {
      kept.memory = undefined as never
      onDelete()
    })
  }, isVersioned)
}
