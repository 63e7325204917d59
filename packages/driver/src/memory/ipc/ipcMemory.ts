import { type CUdeviceptr, cuMemGetAddressRange } from '@shoal/cuda-sys/driver'
import {
  type DType,
  dtypeInfo,
  FeatureNotSupportedError,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  outOfRange,
  propertyOf,
  requireInstance,
  requireInteger,
  requireMade,
  wrongType,
} from '@shoal/types'
import { afterCapture } from '../../core/context/capturing.js'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { requireUuid, uuidOf, visibleUuids } from '../../core/device/deviceUuid.js'
import { Status } from '../../core/errors.js'
import { afterUseOfMemory } from '../../core/inUse.js'
import { forgetLeak, processIsEnding, Resource, releaseAfterFailure, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { DeviceBuffer } from '../buffers/deviceBuffer.js'
import { withReason } from '../handles/handleKinds.js'
import { requireRoom } from '../vmm/properties.js'
import { decodeHandle, encodeHandle, handleBytes } from './handleBytes.js'

/** A buffer's handle for another process on this machine. It is plain data for JSON and `postMessage`. */
export interface IpcMemoryHandle<D extends DType = DType> {
  /** Identifies this kind of handle in JSON. */
  readonly type: 'ipc-memory'
  /** The `CUipcMemHandle` in base64. */
  readonly handle: string
  /** Offset of the buffer in its allocation, in bytes. The handle opens the whole allocation. */
  readonly byteOffset: number
  /** Type of the elements. */
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  /** UUID of the buffer's device. */
  readonly deviceUuid: string
}

const openApi = 'IpcMemory.open'
const lazyPeerAccess = 1
const onlyAllocated =
  'only memory from DeviceBuffer.allocate, from or zeros has such a handle, not that of a stream, a pool or a mapping'

/**
 * Returns a handle with which another process on this machine can open the buffer (`cuIpcGetMemHandle`,
 * `cudaIpcGetMemHandle`). The buffer must come from `DeviceBuffer.allocate`, `from` or `zeros`. Keep the buffer until
 * the other process no longer uses it.
 * @throws TypeError; RangeError for a buffer without elements; StatusError for memory of a stream, a pool or a mapping;
 * DisposedError
 * @example
 * using buffer = DeviceBuffer.from(device, Float32Array.of(1, 2, 3))
 * const text = JSON.stringify(ipcMemoryHandle(buffer))
 */
export function ipcMemoryHandle<D extends DType>(buffer: DeviceBuffer<D>): IpcMemoryHandle<D> {
  requireInstance(buffer, 'ipcMemoryHandle', 'buffer', DeviceBuffer)
  const address = buffer.address as CUdeviceptr
  if (buffer.byteLength === 0) {
    throw new RangeError('ipcMemoryHandle: buffer must have memory to share, not 0 elements')
  }
  const { context } = buffer
  const out = scratch()
  context._callDriver('cuMemGetAddressRange', () => cuMemGetAddressRange(out.address, out.address + 8n, address))
  const byteOffset = Number(address - (out.u64[0] as bigint))
  withReason([Status.invalidValue], onlyAllocated, () => context._call('ipcGetMemHandle', out, address))
  const handle = encodeHandle(new Uint8Array(out.buffer, 0, handleBytes))
  const deviceUuid = uuidOf(buffer.device.handle)
  return { type: 'ipc-memory', handle, byteOffset, dtype: buffer.dtype, length: buffer.length, deviceUuid }
}

/**
 * Another process's memory, opened by its handle. `dispose()` closes the memory, and `buffer` can then not be used.
 * @example
 * using memory = IpcMemory.open(device, JSON.parse(text) as IpcMemoryHandle<'f32'>)
 * console.log(await memory.buffer.toArray())
 */
export class IpcMemory<D extends DType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'IpcMemory'
  /** The device of the memory. */
  readonly device: Context['device']
  /** Type of the elements. */
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  /** Size of all elements in bytes. */
  readonly byteLength: number
  readonly #context: Context
  readonly #base: CUdeviceptr
  readonly #address: bigint
  #buffer: DeviceBuffer<D> | undefined

  private constructor(context: Context, base: CUdeviceptr, handle: IpcMemoryHandle<D>) {
    requireMade(base, 'IpcMemory', 'IpcMemory.open')
    super()
    this.device = context.device
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
   * Opens another process's memory (`cuIpcOpenMemHandle`, `cudaIpcOpenMemHandle`).
   * @param owner the device of the memory
   * @throws TypeError, RangeError for other values and for a handle that exceeds its memory or belongs to another
   * device; FeatureNotSupportedError for a device that is not visible to this process; StatusError, also for a handle
   * of this process
   */
  static open<D extends DType>(owner: DeviceOrContext, handle: IpcMemoryHandle<D>): IpcMemory<D> {
    const context = contextOf(owner, openApi)
    const bytes = checkHandle(context.device, handle)
    const out = scratch()
    withReason([Status.invalidContext], 'a process cannot open handles of its own', () =>
      context._callWithRoom(
        handle.length * dtypeInfo(handle.dtype).bytes,
        'ipcOpenMemHandle',
        out,
        bytes,
        lazyPeerAccess,
      ),
    )
    const base = out.u64[0] as CUdeviceptr
    try {
      context._callDriver('cuMemGetAddressRange', () => cuMemGetAddressRange(out.address, out.address + 8n, base))
      requireWithin(handle, Number(out.u64[1]))
      return new IpcMemory(context, base, handle)
    } catch (error) {
      const close = (): void => context._release('ipcCloseMemHandle', base)
      releaseAfterFailure('IpcMemory', close)
      throw error
    }
  }

  /** The elements as a buffer. Valid until `dispose()`. @throws DisposedError */
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

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { dtype: this.dtype, length: this.length, deviceOrdinal: this.device.ordinal }
  }

  /**
   * Closes the memory when the device's work completes (`cuIpcCloseMemHandle`, `cudaIpcCloseMemHandle`). If a call on
   * another thread uses the memory, first waits for that call.
   */
  protected release(): void {
    forgetLeak(this)
    if (processIsEnding()) return
    const context = this.#context
    const calls = [context._releaseCall('ctxSynchronize'), context._releaseCall('ipcCloseMemHandle', this.#base)]
    afterUseOfMemory('IpcMemory', this.#address, this.byteLength, () =>
      afterCapture('IpcMemory', () => context._releases.add('IpcMemory', calls, () => context._removeChild())),
    )
  }
}

function requireWithin({ byteOffset, length, dtype }: IpcMemoryHandle, available: number): void {
  requireRoom(openApi, 'handle.byteOffset', byteOffset, length * dtypeInfo(dtype).bytes, available, 'memory')
}

function checkHandle(device: Context['device'], handle: IpcMemoryHandle): Uint8Array {
  if (propertyOf(handle, 'type') !== 'ipc-memory') {
    throw wrongType(openApi, 'handle', 'what ipcMemoryHandle() returned', handle)
  }
  const { bytes, alignment } = dtypeInfo(handle.dtype, openApi, 'handle.dtype')
  requireInteger(handle.length, openApi, 'handle.length', 1, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
  requireInteger(handle.byteOffset, openApi, 'handle.byteOffset', 0)
  if (handle.byteOffset % alignment !== 0) {
    const expected = `a multiple of ${alignment} for ${handle.dtype}`
    throw outOfRange(openApi, 'handle.byteOffset', expected, handle.byteOffset)
  }
  const needed = requireUuid(handle.deviceUuid, openApi, 'handle.deviceUuid')
  const uuid = uuidOf(device.handle)
  if (needed !== uuid) {
    if (visibleUuids().includes(needed)) {
      throw new RangeError(`${openApi}: device must be the device of the memory, ${needed}, not ${uuid}`)
    }
    throw new FeatureNotSupportedError({
      library: 'NVIDIA CUDA driver',
      api: openApi,
      reason: `the memory lies on device ${needed}, which this process does not see`,
    })
  }
  return decodeHandle(handle.handle, openApi)
}
