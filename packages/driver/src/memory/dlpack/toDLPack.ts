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

/** How memory becomes a tensor of DLPack. */
export interface ToDLPackOptions {
  /**
   * The stream that the consumer works on: it waits for what is pending on the memory. Must be named where something
   * is, since a tensor cannot say so.
   */
  readonly stream?: StreamLike | undefined
  /** A `DLManagedTensorVersioned` of DLPack 1.x and not a `DLManagedTensor`. Default: false. */
  readonly versioned?: boolean | undefined
  /**
   * Default: `cuda` for memory of a device, `cudaHost` for memory of the host. The protocol does not tell managed
   * memory from that of a device.
   */
  readonly deviceType?: TensorDeviceType | undefined
}

const keys: OptionKeys<ToDLPackOptions> = { stream: true, versioned: true, deviceType: true }
/** `DLPACK_FLAG_BITMASK_READ_ONLY` */
const readOnlyFlag = 1n

/** Calls the deleters of tensors that nobody took and nobody disposed of: nothing else would be told. */
const untaken = new FinalizationRegistry<{ readonly address: bigint; readonly versioned: boolean }>(
  ({ address, versioned }) => deleteTensor(address, versioned),
)

/**
 * A tensor of DLPack on its way to other code: the pointer that capsules of Python have. It belongs to this object
 * until {@link take} hands it over; whoever has it then calls its deleter, from any thread. Where nobody takes it,
 * `dispose()` or the collector does. Made by {@link toDLPack}.
 */
export class DLPackCapsule extends Resource {
  protected readonly kind = 'DLPackCapsule'
  /** Whether it points to a `DLManagedTensorVersioned`, and not to a `DLManagedTensor`. */
  readonly versioned: boolean
  readonly #address: bigint
  /** The callback has what it needs of it, and not the capsule, which may be collected before. */
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
   * Resolves when the deleter was called: nobody uses the memory through this tensor any more. Whoever asks keeps the
   * process alive until then.
   */
  get released(): Promise<void> {
    return this.#released()
  }

  /** Whether the tensor was handed over. */
  get taken(): boolean {
    return this.#isTaken
  }

  /**
   * Hands the tensor over, once: its address, for an addon. Who takes it must call its deleter.
   * @throws DisposedError; TypeError when it was taken before
   */
  take(): bigint {
    return this._take('DLPackCapsule.take')
  }

  /** @internal The same for another function, which errors name. */
  _take(api: string): bigint {
    this._peek(api)
    this.#isTaken = true
    untaken.unregister(this)
    return this.#address
  }

  /** @internal The address without taking it. @throws as {@link take} */
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
 * Memory as a tensor of DLPack, for addons and libraries that take those; without a copy. The object is kept until the
 * consumer has called the deleter, and must not be disposed of before: `capsule.released` says when.
 * @throws TypeError for what is no memory or has no dtype, for read-only memory unless `versioned`, and where work is
 * pending on the memory and no stream is named; DisposedError; FeatureNotSupportedError without the native addon
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
    // Page-locked memory is of the first device, by DLPack's convention; the host is device 0, too.
    deviceId: isHost ? 0 : range.deviceOrdinal,
    type: typeWord(range.dtype),
    shape: range.shape,
    strides: range.strides,
    flags: isVersioned ? (range.readOnly === true ? readOnlyFlag : 0n) : undefined,
  }
  // The callback, which stays until the deleter was called, holds the memory.
  return new DLPackCapsule((onDelete) => {
    const kept = { memory }
    return createTensor(fields, () => {
      kept.memory = undefined as never
      onDelete()
    })
  }, isVersioned)
}
