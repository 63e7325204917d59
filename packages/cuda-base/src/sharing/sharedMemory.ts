import {
  AddressRange,
  DescriptorHandle,
  Device,
  DeviceBuffer,
  type HandleContent,
  type HandleFacts,
  IpcMemory,
  MemoryPool,
  openIpcEvent,
  PhysicalMemory,
  Resource,
  Stream,
  throwFirst,
  visibleUuids,
} from '@shoal/cuda-base'
import { closeDescriptor } from '@shoal/ffi'
import {
  contiguousStrides,
  type DType,
  dtypeInfo,
  FeatureNotSupportedError,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  outOfRange,
  type WaitOptions,
} from '@shoal/types'
import { requireDescription, type SharedDescription, type SharingWay } from './description.js'

/** What was opened, and is closed in this order. */
interface Opened {
  readonly memory: MemoryLike
  readonly holders: readonly Disposable[]
}

/**
 * Memory of another thread or process, opened: whatever takes memory takes it. `dispose()` closes it and tells the other side. Made by
 * `receive` and `receiveMemory`.
 *
 * @example
 * using memory = await receive<'f32'>(process)
 * console.log(memory.shape, await memory.buffer.toArray())
 */
export class SharedMemory<D extends DType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'SharedMemory'
  /** The device it lies on. */
  readonly device: Device
  /** How it came. */
  readonly way: SharingWay
  /** Bytes from the first element to the end of the last. */
  readonly byteLength: number
  /** The type of its elements: `u8` where the sender named none. */
  readonly dtype: D
  /** Extents in elements, the outermost dimension first. */
  readonly shape: readonly number[]
  /** Steps in elements. */
  readonly strides: readonly number[]
  /** Number of elements. */
  readonly length: number
  readonly #byteOffset: number
  readonly #readOnly: boolean
  readonly #opened: Opened
  #whenClosed: () => void = () => undefined
  #buffer: DeviceBuffer<D> | undefined

  private constructor(device: Device, description: SharedDescription, opened: Opened) {
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
   * @internal Opens what a description tells of, and closes the descriptors that came with it.
   * @throws TypeError, RangeError for a description that cannot be; FeatureNotSupportedError for a device that this process does not see;
   * StatusError
   */
  static async _open<D extends DType>(
    data: unknown,
    descriptors: readonly number[],
    api: string,
    wait?: WaitOptions,
  ): Promise<SharedMemory<D>> {
    const left = [...descriptors]
    try {
      return await SharedMemory.#open<D>(data, left, api, wait)
    } finally {
      for (const descriptor of left) closeDescriptor(descriptor)
    }
  }

  static async #open<D extends DType>(
    data: unknown,
    descriptors: number[],
    api: string,
    wait: WaitOptions | undefined,
  ): Promise<SharedMemory<D>> {
    const description = requireDescription(data, api)
    const { deviceUuid, event } = description
    const ordinal = visibleUuids().indexOf(deviceUuid)
    if (ordinal < 0) {
      const reason = `the memory lies on device ${deviceUuid}, which this process does not see`
      throw new FeatureNotSupportedError({ library: 'NVIDIA CUDA driver', api, reason })
    }
    const device = Device.get(ordinal)
    const memory = new SharedMemory<D>(device, description, open(device, description, descriptors, api))
    if (event === undefined) return memory
    const there = openIpcEvent(device, event)
    try {
      await there.synchronize(wait)
      return memory
    } catch (error) {
      memory.dispose()
      throw error
    } finally {
      there.dispose()
    }
  }

  /** @internal Called once it was closed. */
  _onClose(tell: () => void): void {
    this.#whenClosed = tell
  }

  /** Its elements as a buffer, until `dispose()`. @throws RangeError for elements with gaps; DisposedError */
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

  /** Closes what was opened, once the work of this process that uses it has ended, and tells the sender. */
  protected release(): void {
    const failures: unknown[] = []
    for (const holder of this.#opened.holders) {
      try {
        holder[Symbol.dispose]()
      } catch (error) {
        failures.push(error)
      }
    }
    this.#whenClosed()
    throwFirst('SharedMemory', failures)
  }
}

/** What is taken from `descriptors` is closed here. */
function open(device: Device, description: SharedDescription, descriptors: number[], api: string): Opened {
  const { way, byteOffset, byteLength, handle = '', deviceUuid, allocationBytes = 0 } = description
  const needed = way === 'posix-fd' || way === 'pool' ? 1 : 0
  if (descriptors.length !== needed) throw outOfRange(api, 'message', `with ${needed} descriptors`, descriptors.length)
  const bytes = byteOffset + byteLength
  if (way === 'process') return inProcess(device, description, api)
  if (way === 'ipc') {
    const memory = IpcMemory.open(device, {
      type: 'ipc-memory',
      handle,
      byteOffset: 0,
      dtype: 'u8',
      length: bytes,
      deviceUuid,
    })
    return { memory, holders: [memory] }
  }
  if (way === 'posix-fd') {
    const facts = { content: 'memory', byteLength: allocationBytes, deviceUuid } as const
    const physical = imported(descriptors, facts, (handle) => PhysicalMemory.import(device, handle))
    const range = AddressRange.reserve(allocationBytes)
    try {
      const mapped = range.map(physical)
      return { memory: mapped, holders: [mapped, range] }
    } catch (error) {
      range.dispose()
      throw error
    } finally {
      physical.dispose()
    }
  }
  const facts = { content: 'pool', byteLength: 0, deviceUuid } as const
  const stream = Stream.create(device)
  const holders: Disposable[] = [stream]
  try {
    const pool = imported(descriptors, facts, (handle) => MemoryPool.import(device, handle))
    holders.unshift(pool)
    const memory = pool.importPointer(stream, { type: 'pool-pointer', data: handle, dtype: 'u8', length: bytes })
    return { memory, holders: [memory, ...holders] }
  } catch (error) {
    for (const holder of holders) holder[Symbol.dispose]()
    throw error
  }
}

function inProcess(device: Device, { process: id, address = '', byteLength }: SharedDescription, api: string): Opened {
  if (id !== process.pid) throw outOfRange(api, 'message.process', `${process.pid}, this one`, id)
  const memory = DeviceBuffer.fromAddress(device, BigInt(address), 'u8', byteLength)
  return { memory, holders: [memory] }
}

/** What is imported by the descriptor that came, which is not needed any more then. */
function imported<C extends HandleContent, T>(
  descriptors: number[],
  facts: HandleFacts<C>,
  take: (handle: DescriptorHandle<C>) => T,
): T {
  const handle = new DescriptorHandle(descriptors.pop() as number, facts)
  try {
    return take(handle)
  } finally {
    handle.dispose()
  }
}
