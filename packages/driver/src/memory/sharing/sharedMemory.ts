import { closeDescriptor } from '@shoal/ffi'
import {
  contiguousStrides,
  type DType,
  dtypeInfo,
  FeatureNotSupportedError,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  propertyOf,
  requireMade,
  type WaitOptions,
  wrongType,
} from '@shoal/types'
import { Device } from '../../core/device/device.js'
import { visibleUuids } from '../../core/device/deviceUuid.js'
import { Resource, throwFirst, warnOnReject } from '../../core/lifetime.js'
import { addAwaited, awaitReleases, releasesAreAwaited, releasesBlock } from '../../core/releasing.js'
import { DeviceBuffer } from '../buffers/deviceBuffer.js'
import { openIpcEvent } from '../ipc/ipcEvent.js'
import {
  furtherPieces,
  type LinkMessage,
  requireDescription,
  type SharedDescription,
  type SharingWay,
} from './description.js'
import { messagesBehind, type Opened, open } from './opening.js'

/**
 * Opened memory of another thread or process. Every function that takes memory accepts it.
 *
 * `dispose()` closes the memory and notifies the sender. Created by `receive` and `receiveMemory`.
 *
 * @example
 * using memory = await receive<'f32'>(process)
 * console.log(memory.shape, await memory.buffer.toArray())
 */
export class SharedMemory<D extends DType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'SharedMemory'
  /** The device of the memory. */
  readonly device: Device
  /** How the memory was shared. */
  readonly way: SharingWay
  /** Bytes from the first element to the end of the last. */
  readonly byteLength: number
  /** Type of the elements; `u8` if the sender's memory has no type. */
  readonly dtype: D
  /** Extents in elements, the outermost dimension first. */
  readonly shape: readonly number[]
  /** Strides in elements. */
  readonly strides: readonly number[]
  /** Number of elements. */
  readonly length: number
  readonly #byteOffset: number
  readonly #readOnly: boolean
  readonly #opened: Opened
  #whenClosed: () => void = () => undefined
  #buffer: DeviceBuffer<D> | undefined

  private constructor(device: Device, description: SharedDescription, opened: Opened) {
    requireMade(opened, 'SharedMemory', 'receive', 'object')
    super()
    const { way, byteLength, byteOffset, dtype = 'u8', readOnly } = description
    const { shape = [Math.floor(byteLength / dtypeInfo(dtype).bytes)] } = description
    this.device = device
    this.way = way
    this.byteLength = byteLength
    this.dtype = dtype as D
    this.shape = shape
    this.strides = description.strides ?? contiguousStrides(shape)
    this.length = shape.reduce((product, extent) => product * extent, 1)
    this.#byteOffset = byteOffset
    this.#readOnly = readOnly === true
    this.#opened = opened
  }

  /**
   * @internal Opens the memory of a description. Closes the descriptors of this and the following messages.
   * @param more returns the next message, with further descriptors
   * @throws TypeError, RangeError for an invalid description; FeatureNotSupportedError for a device that is not visible
   * to this process; StatusError
   */
  static async _open<D extends DType>(
    first: LinkMessage,
    more: () => Promise<LinkMessage>,
    api: string,
    wait?: WaitOptions,
  ): Promise<SharedMemory<D>> {
    const descriptors = [...first.descriptors]
    let messages = 0
    const next = async (): Promise<number[]> => {
      messages -= 1
      const { data, descriptors: further } = await more()
      if (propertyOf(data, 'type') === furtherPieces) return [...further]
      messages = 0
      for (const descriptor of further) closeDescriptor(descriptor)
      throw wrongType(api, 'message', 'further pieces of the shared memory', data)
    }
    try {
      const description = requireDescription(first.data, first.ways, api)
      messages = messagesBehind(description)
      return await SharedMemory.#open<D>(description, descriptors, next, api, wait)
    } catch (error) {
      // Read the remaining messages of this memory even after an error, and close their descriptors.
      while (messages > 0) for (const one of await next().catch(() => [])) closeDescriptor(one)
      throw error
    } finally {
      for (const descriptor of descriptors) closeDescriptor(descriptor)
    }
  }

  static async #open<D extends DType>(
    description: SharedDescription,
    descriptors: number[],
    more: () => Promise<number[]>,
    api: string,
    wait: WaitOptions | undefined,
  ): Promise<SharedMemory<D>> {
    const { deviceUuid, event } = description
    const ordinal = visibleUuids().indexOf(deviceUuid)
    if (ordinal < 0) {
      const reason = `the memory lies on device ${deviceUuid}, which this process does not see`
      throw new FeatureNotSupportedError({ library: 'NVIDIA CUDA driver', api, reason })
    }
    const device = Device.get(ordinal)
    const memory = new SharedMemory<D>(device, description, await open(device, description, descriptors, more, api))
    if (event === undefined) return memory
    try {
      const there = openIpcEvent(device, event)
      try {
        await there.synchronize(wait)
      } finally {
        there.dispose()
      }
      return memory
    } catch (error) {
      memory.dispose()
      throw error
    }
  }

  /** @internal Sets the function that is called after the memory is closed. */
  _onClose(tell: () => void): void {
    this.#whenClosed = tell
  }

  /** The elements as a buffer. Valid until `dispose()`. @throws RangeError for elements with gaps; DisposedError */
  get buffer(): DeviceBuffer<D> {
    this._requireAlive()
    this.#buffer ??= DeviceBuffer.view(this.device, this, this.dtype, { length: this.length })
    return this.#buffer
  }

  get [memoryProtocol](): MemoryRange {
    this._requireAlive()
    const { address, context, deviceOrdinal } = this.#opened.memory[memoryProtocol]
    const { dtype, length, shape, strides, byteLength } = this
    const readOnly = this.#readOnly ? { readOnly: true } : {}
    const layout = { dtype, length, shape, strides, ...readOnly }
    return { version: 1, address: address + BigInt(this.#byteOffset), byteLength, deviceOrdinal, context, ...layout }
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { way: this.way, dtype: this.dtype, shape: `[${this.shape}]`, deviceOrdinal: this.device.ordinal }
  }

  /** Closes the memory when this process's work on it completes, then notifies the sender. */
  protected release(): void {
    if (releasesBlock()) {
      try {
        this.#close()
      } finally {
        this.#whenClosed()
      }
      return
    }
    const closed = awaitReleases(() => this.#close()).finally(this.#whenClosed)
    if (releasesAreAwaited()) addAwaited(closed)
    else warnOnReject('SharedMemory', closed)
  }

  #close(): void {
    const failures: unknown[] = []
    for (const holder of this.#opened.holders) {
      try {
        holder[Symbol.dispose]()
      } catch (error) {
        failures.push(error)
      }
    }
    throwFirst('SharedMemory', failures)
  }
}
