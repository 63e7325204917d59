import {
  type Context,
  type Device,
  DeviceBuffer,
  forgetLeak,
  giveBackUnused,
  processIsEnding,
  Resource,
  requireDevice,
  Status,
  scratch,
  uuidOf,
  visibleUuids,
  watchForLeak,
  withReason,
} from '@shoal/cuda-base'
import { type CUdeviceptr, cuMemGetAddressRange } from '@shoal/cuda-sys/driver'
import {
  type DType,
  describeValue,
  dtypeInfo,
  FeatureNotSupportedError,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  requireInteger,
  requireText,
} from '@shoal/types'
import { decodeHandle, encodeHandle, handleBytes } from './handleBytes.js'

/** What another process on this machine opens a buffer with. Plain data: JSON and `postMessage` carry it. */
export interface IpcMemoryHandle<D extends DType = DType> {
  readonly type: 'ipc-memory'
  /** The `CUipcMemHandle`, base64. */
  readonly handle: string
  /** Bytes from the start of the allocation, which is what the handle opens. */
  readonly byteOffset: number
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  /** UUID of the device. */
  readonly deviceUuid: string
}

const lazyPeerAccess = 1
const onlyAllocated =
  'only memory from DeviceBuffer.allocate, from or zeros has such a handle, not that of a stream, a pool or a mapping'

/**
 * A handle for a buffer (`cuIpcGetMemHandle`). The buffer must come from `DeviceBuffer.allocate` or its kin, not from a
 * stream or a mapping, and must live as long as the other process uses it.
 * @throws StatusError for memory that cannot be shared in this way.
 */
export function ipcMemoryHandle<D extends DType>(buffer: DeviceBuffer<D>): IpcMemoryHandle<D> {
  if (!(buffer instanceof DeviceBuffer))
    throw new TypeError(`buffer must be a DeviceBuffer, not ${describeValue(buffer)}`)
  const address = buffer.address as CUdeviceptr
  if (buffer.byteLength === 0) throw new RangeError('a buffer without elements has no memory to share')
  const { context } = buffer
  const out = scratch()
  context._callDriver('cuMemGetAddressRange', () => cuMemGetAddressRange(out.address, out.address + 8n, address))
  const byteOffset = Number(address - (out.u64[0] as bigint))
  withReason([Status.invalidValue], onlyAllocated, () => context._call('ipcGetMemHandle', out, address))
  const handle = encodeHandle(new Uint8Array(out.buffer, 0, handleBytes))
  const deviceUuid = uuidOf(buffer.device.handle)
  return { type: 'ipc-memory', handle, byteOffset, dtype: buffer.dtype, length: buffer.length, deviceUuid }
}

/** Memory of another process, opened by its handle. dispose() closes it; buffers over it end with it. */
export class IpcMemory<D extends DType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'IpcMemory'
  readonly device: Device
  readonly dtype: D
  readonly length: number
  readonly byteLength: number
  readonly #context: Context
  readonly #base: CUdeviceptr
  readonly #address: bigint
  #buffer: DeviceBuffer<D> | undefined

  private constructor(device: Device, base: CUdeviceptr, handle: IpcMemoryHandle<D>) {
    super()
    const context = device.primaryContext
    this.device = device
    this.#context = context
    this.#base = base
    this.#address = base + BigInt(handle.byteOffset)
    this.dtype = handle.dtype
    this.length = handle.length
    this.byteLength = handle.length * dtypeInfo(handle.dtype).bytes
    context._addChild()
    watchForLeak(this, `IpcMemory of ${this.byteLength} bytes`, () => 'it stays open until the process ends')
  }

  /**
   * Opens memory of another process (`cuIpcOpenMemHandle`).
   * @throws TypeError, RangeError for what is no such handle, longer than the memory behind it, or of another device;
   * StatusError, also for a handle of this very process.
   */
  static open<D extends DType>(device: Device, handle: IpcMemoryHandle<D>): IpcMemory<D> {
    const bytes = checkHandle(requireDevice(device, 'IpcMemory.open'), handle)
    const out = scratch()
    const { primaryContext } = device
    withReason([Status.invalidContext], 'a process cannot open handles of its own', () =>
      primaryContext._call('ipcOpenMemHandle', out, bytes, lazyPeerAccess),
    )
    const base = out.u64[0] as CUdeviceptr
    try {
      primaryContext._callDriver('cuMemGetAddressRange', () =>
        cuMemGetAddressRange(out.address, out.address + 8n, base),
      )
      requireWithin(handle, Number(out.u64[1]))
      return new IpcMemory(device, base, handle)
    } catch (error) {
      const close = (): void => primaryContext._release('ipcCloseMemHandle', base)
      giveBackUnused('IpcMemory', close)
      throw error
    }
  }

  /** The elements as a buffer. It can be used until dispose(). */
  get buffer(): DeviceBuffer<D> {
    this._requireAlive()
    this.#buffer ??= DeviceBuffer.view(this.device, this, this.dtype, { length: this.length })
    return this.#buffer
  }

  get [memoryProtocol](): MemoryRange {
    this._requireAlive()
    return {
      version: 0,
      address: this.#address,
      byteLength: this.byteLength,
      deviceOrdinal: this.device.ordinal,
      context: this.#context.handle,
      dtype: this.dtype,
      length: this.length,
    }
  }

  /** Closes it (`cuIpcCloseMemHandle`): blocks until the work of the device has ended. */
  protected release(): void {
    forgetLeak(this)
    const context = this.#context
    if (processIsEnding()) return
    const close = (): void => context._release('ipcCloseMemHandle', this.#base)
    try {
      try {
        context._release('ctxSynchronize')
      } catch (error) {
        giveBackUnused('IpcMemory', close)
        throw error
      }
      close()
    } finally {
      context._removeChild()
    }
  }
}

function requireWithin({ byteOffset, length, dtype }: IpcMemoryHandle, available: number): void {
  const byteLength = length * dtypeInfo(dtype).bytes
  if (byteOffset + byteLength <= available) return
  throw new RangeError(
    `byteOffset ${byteOffset} and ${byteLength} bytes end beyond the memory, which has ${available} bytes`,
  )
}

function checkHandle(device: Device, handle: IpcMemoryHandle): Uint8Array {
  if (typeof handle !== 'object' || handle === null || handle.type !== 'ipc-memory') {
    throw new TypeError(`handle must be what ipcMemoryHandle() gave, not ${describeValue(handle)}`)
  }
  const { bytes, alignment } = dtypeInfo(handle.dtype)
  requireInteger(handle.length, 'IpcMemory.open', 'handle.length', 1, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
  requireInteger(handle.byteOffset, 'IpcMemory.open', 'handle.byteOffset', 0)
  if (handle.byteOffset % alignment !== 0) {
    throw new RangeError(`byteOffset must be a multiple of ${alignment} for ${handle.dtype}, not ${handle.byteOffset}`)
  }
  requireText(handle.deviceUuid, 'IpcMemory.open', 'handle.deviceUuid')
  const uuid = uuidOf(device.handle)
  if (handle.deviceUuid !== uuid) {
    const isVisible = visibleUuids().includes(handle.deviceUuid)
    if (isVisible) throw new RangeError(`the memory lies on device ${handle.deviceUuid}, not on ${uuid}`)
    throw new FeatureNotSupportedError({
      library: 'NVIDIA CUDA driver',
      api: 'opening the memory',
      reason: `it lies on device ${handle.deviceUuid}, which this process does not see`,
    })
  }
  return decodeHandle(handle.handle, 'handle')
}
