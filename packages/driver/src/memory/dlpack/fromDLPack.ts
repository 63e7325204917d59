import { readMemory } from '@shoal/ffi'
import { deleteTensor, externalAddress } from '@shoal/ffi/calls'
import {
  contiguousStrides,
  type DType,
  dtypeInfo,
  isInstance,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type OptionKeys,
  optionalBoolean,
  optionalOptions,
  otherCopy,
  outOfRange,
  requireAddress,
  requireMade,
  type StreamLike,
  spanOf,
  toStreamHandle,
  wrongType,
} from '@shoal/types'
import { whenMemoryUnused } from '../../core/inUse.js'
import { forgetLeak, processIsEnding, Resource, warnOnReject, watchForLeak } from '../../core/lifetime.js'
import { deviceTypeOf, dtypeOfWord, type TensorDeviceType } from './tensorTypes.js'
import { DLPackCapsule } from './toDLPack.js'

/** Options for reading a DLPack tensor. */
export interface FromDLPackOptions {
  /**
   * Whether the pointer is a `DLManagedTensorVersioned`. Default: the value of the capsule, or false for other
   * pointers.
   */
  readonly versioned?: boolean | undefined
  /**
   * The stream with pending work that produces the contents. Users of the memory wait for it. Default: no pending work.
   */
  readonly stream?: StreamLike | undefined
}

const keys: OptionKeys<FromDLPackOptions> = { versioned: true, stream: true }

// Field offsets of DLPack's ABI.
const plain = { bytes: 64, tensor: 0 } as const
const withVersion = { bytes: 80, tensor: 32, flags: 24 } as const
const mostDimensions = 64
const readOnlyFlag = 1n
const largest = BigInt(Number.MAX_SAFE_INTEGER)

interface Tensor {
  readonly address: bigint
  readonly deviceType: TensorDeviceType
  readonly deviceOrdinal: number
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly strides: readonly number[]
  readonly length: number
  readonly byteLength: number
  readonly readOnly: boolean
  readonly stream: bigint | undefined
}

/**
 * Memory of other code, from a DLPack tensor. Every function that takes memory accepts it.
 *
 * `dispose()` calls the tensor's deleter: first wait for the work that uses the memory. Created by {@link fromDLPack}.
 */
export class DLPackTensor extends Resource implements MemoryLike {
  protected readonly kind = 'DLPackTensor'
  readonly #tensor: Tensor
  readonly #delete: () => void

  /** @internal */
  constructor(tensor: Tensor, release: () => void) {
    requireMade(release, 'DLPackTensor', 'fromDLPack', 'function')
    super()
    this.#tensor = tensor
    this.#delete = release
    const what = `A DLPackTensor of ${tensor.byteLength} bytes`
    watchForLeak(this, what, () => {
      release()
      return 'its deleter is called now'
    })
  }

  /** Kind of memory. */
  get deviceType(): TensorDeviceType {
    return this.#tensor.deviceType
  }

  /** Ordinal of the memory's device; -1 for host memory. */
  get deviceOrdinal(): number {
    return this.#tensor.deviceOrdinal
  }

  /** Type of the elements. */
  get dtype(): DType {
    return this.#tensor.dtype
  }

  /** Extents in elements, the outermost dimension first. */
  get shape(): readonly number[] {
    return this.#tensor.shape
  }

  /** Strides in elements. */
  get strides(): readonly number[] {
    return this.#tensor.strides
  }

  /** Number of elements. */
  get length(): number {
    return this.#tensor.length
  }

  /** Bytes from the first element to the end of the last. */
  get byteLength(): number {
    return this.#tensor.byteLength
  }

  get [memoryProtocol](): MemoryRange {
    this._requireAlive()
    const { deviceType: _, stream, ...range } = this.#tensor
    return { version: 1, context: 0n, ...range, ...(stream === undefined ? {} : { stream }) }
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { dtype, shape, deviceType, deviceOrdinal } = this.#tensor
    return { dtype, shape: `[${shape}]`, deviceType, deviceOrdinal }
  }

  /** Calls the tensor's deleter. */
  protected release(): void {
    forgetLeak(this)
    if (processIsEnding()) return
    // A call on another thread may still use the memory.
    const unused = whenMemoryUnused(this.#tensor.address, this.#tensor.byteLength)
    if (unused === undefined) this.#delete()
    else warnOnReject('A DLPackTensor', unused.then(this.#delete))
  }
}

/**
 * Takes ownership of a DLPack tensor: the result of {@link toDLPack}, or a pointer from an addon as an External or a
 * bigint.
 *
 * The object calls the tensor's deleter once. If this function throws, the caller keeps owning the tensor. The address
 * cannot be checked: a wrong address ends the process.
 * @throws TypeError, RangeError for memory other than of the host or CUDA, several lanes, an unknown element type,
 * negative strides or another major version; DisposedError; FeatureNotSupportedError without the native addon
 *
 * @example
 * using tensor = fromDLPack(addon.produce())
 * const buffer = DeviceBuffer.view(device, tensor, 'f32')
 */
export function fromDLPack(capsule: DLPackCapsule | bigint | object, options?: FromDLPackOptions): DLPackTensor {
  const api = 'fromDLPack'
  const { versioned, stream } = optionalOptions(options, api, keys)
  const isOurs = isInstance(capsule, DLPackCapsule)
  const isVersioned = isOurs ? capsule.versioned : optionalBoolean(versioned, api, 'versioned', false)
  if (isOurs && versioned !== undefined && versioned !== isVersioned) {
    throw outOfRange(api, 'versioned', `${isVersioned}, as the capsule is`, versioned)
  }
  if (stream === null) throw wrongType(api, 'stream', 'a stream', stream)
  const pending = stream === undefined ? undefined : toStreamHandle(stream, api).handle
  const address = isOurs ? capsule._peek(api) : addressFrom(capsule, api)
  const tensor = read(address, isVersioned, pending === 0n ? 1n : pending, api)
  if (isOurs) capsule._take(api)
  return new DLPackTensor(tensor, () => deleteTensor(address, isVersioned))
}

function addressFrom(capsule: unknown, api: string): bigint {
  const expected = 'a DLPackCapsule, an External or the address of a tensor'
  const copy = otherCopy(capsule, api, 'capsule', DLPackCapsule)
  if (copy !== undefined) throw copy
  const address = typeof capsule === 'bigint' ? requireAddress(capsule, api, 'capsule') : externalAddress(capsule)
  if (address === undefined) throw wrongType(api, 'capsule', expected, capsule)
  if (address === 0n || address % 8n !== 0n) {
    throw outOfRange(api, 'capsule', 'the address of a tensor, a multiple of 8', address)
  }
  return address
}

function bytesAt(address: bigint, byteLength: number): DataView {
  const bytes = readMemory(address, byteLength)
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function read(address: bigint, isVersioned: boolean, stream: bigint | undefined, api: string): Tensor {
  const layout = isVersioned ? withVersion : plain
  const view = bytesAt(address, layout.bytes)
  if (isVersioned && view.getUint32(0, true) !== 1) {
    throw outOfRange(api, 'capsule.version', 'of DLPack 1.x', `${view.getUint32(0, true)}.${view.getUint32(4, true)}`)
  }
  const at = layout.tensor
  const deviceType = deviceTypeOf(view.getInt32(at + 8, true), api)
  const ordinal = view.getInt32(at + 12, true)
  if (ordinal < 0) throw outOfRange(api, 'capsule.device.device_id', 'from 0', ordinal)
  const dimensions = view.getInt32(at + 16, true)
  if (dimensions < 0 || dimensions > mostDimensions) {
    throw outOfRange(api, 'capsule.ndim', `from 0 to ${mostDimensions}`, dimensions)
  }
  const dtype = dtypeOfWord(view.getUint8(at + 20), view.getUint8(at + 21), view.getUint16(at + 22, true), api)
  const shape = sizesAt(view.getBigUint64(at + 24, true), dimensions, 'shape', api) ?? []
  if (shape.length !== dimensions) throw wrongType(api, 'capsule.shape', `of ${dimensions} numbers`, null)
  const strides = sizesAt(view.getBigUint64(at + 32, true), dimensions, 'strides', api) ?? contiguousStrides(shape)
  const length = shape.reduce((product, extent) => product * extent, 1)
  const byteLength = spanOf({ shape, strides, length }, dtypeInfo(dtype).bytes)
  if (!Number.isSafeInteger(byteLength) || !Number.isSafeInteger(length)) {
    throw outOfRange(api, 'capsule.shape', 'of less than 2^53 bytes', `[${shape}]`)
  }
  const data = view.getBigUint64(at, true)
  if (data === 0n && length > 0) throw outOfRange(api, 'capsule.data', 'an address other than 0', data)
  const isHost = deviceType === 'cpu' || deviceType === 'cudaHost'
  const flags = isVersioned ? view.getBigUint64(withVersion.flags, true) : 0n
  return {
    address: data + view.getBigUint64(at + 40, true),
    deviceType,
    deviceOrdinal: isHost ? -1 : ordinal,
    dtype,
    shape,
    strides,
    length,
    byteLength,
    readOnly: (flags & readOnlyFlag) !== 0n,
    stream,
  }
}

/** Reads the numbers at a pointer; undefined for a null pointer. @throws RangeError */
function sizesAt(address: bigint, count: number, what: 'shape' | 'strides', api: string): number[] | undefined {
  if (address === 0n) return undefined
  const view = bytesAt(address, count * 8)
  return Array.from({ length: count }, (_, index) => {
    const size = view.getBigInt64(index * 8, true)
    if (size >= 0n && size <= largest) return Number(size)
    throw outOfRange(api, `capsule.${what}[${index}]`, 'an integer from 0 to 2^53 - 1', size)
  })
}
