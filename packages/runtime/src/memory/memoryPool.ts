import {
  type MemoryPoolOptions as BaseOptions,
  checkRelease,
  type HandleKind,
  handleKindBits,
  handleKindsOf,
  importHandle,
  MemoryPoolObject,
  onlyItsOwn,
  type PoolCalls,
  type PoolOrigin,
  type PoolPointer,
  poolPointerBytes,
  poolPointerFrom,
  requireImported,
  requireInteger,
  requireOptions,
  resolveDevice,
  type ShareableHandle,
  Status,
  scratch,
  withCreateReason,
  withReason,
} from '@shoal/cuda-base'
import { cuMemPoolDestroy } from '@shoal/cuda-sys/driver'
import {
  cudaDeviceGetDefaultMemPool,
  cudaDeviceGetMemPool,
  cudaDeviceSetMemPool,
  type cudaMemAllocationHandleType,
  cudaMemAllocationType,
  type cudaMemLocationType,
  type cudaMemPool_t,
  type cudaMemPoolAttr,
  cudaMemPoolCreate,
  cudaMemPoolDestroy,
  cudaMemPoolExportPointer,
  cudaMemPoolExportToShareableHandle,
  cudaMemPoolGetAccess,
  cudaMemPoolGetAttribute,
  cudaMemPoolImportFromShareableHandle,
  cudaMemPoolImportPointer,
  cudaMemPoolProps,
  cudaMemPoolSetAccess,
  cudaMemPoolSetAttribute,
  cudaMemPoolTrimTo,
} from '@shoal/cuda-sys/runtime'
import { type DeviceLike, type DType, describeValue } from '@shoal/types'
import { deviceOrCurrent } from '../currentDevice.js'
import { Device } from '../device.js'
import { callOn, releaseOn } from '../start.js'
import { requireStream, type Stream } from '../stream.js'
import { Allocation } from './allocation.js'
import { DeviceMemory, type DeviceOption } from './deviceMemory.js'

/** How a pool is made. */
export interface MemoryPoolOptions extends BaseOptions, DeviceOption {}

const calls: PoolCalls = {
  destroy(context, pool) {
    // A pool outlives a reset. Without a context the runtime would make one, perhaps of another device.
    if (context.disposed) checkRelease(cuMemPoolDestroy(pool), 'cuMemPoolDestroy')
    else releaseOn(context, 'cudaMemPoolDestroy', () => cudaMemPoolDestroy(pool))
  },
  getAttribute(context, pool, code, out) {
    const attribute = code as cudaMemPoolAttr
    callOn(context, 'cudaMemPoolGetAttribute', () => cudaMemPoolGetAttribute(pool, attribute, out))
  },
  setAttribute(context, pool, code, value) {
    const attribute = code as cudaMemPoolAttr
    callOn(context, 'cudaMemPoolSetAttribute', () => cudaMemPoolSetAttribute(pool, attribute, value))
  },
  trimTo(context, pool, bytesToKeep) {
    callOn(context, 'cudaMemPoolTrimTo', () => cudaMemPoolTrimTo(pool, bytesToKeep))
  },
  setAccess(context, pool, descriptions, count) {
    callOn(context, 'cudaMemPoolSetAccess', () => cudaMemPoolSetAccess(pool, descriptions, count))
  },
  getAccess(context, pool, out, location) {
    callOn(context, 'cudaMemPoolGetAccess', () => cudaMemPoolGetAccess(out, pool, location))
  },
  exportTo(context, pool, out, kind) {
    callOn(context, 'cudaMemPoolExportToShareableHandle', () =>
      cudaMemPoolExportToShareableHandle(out, pool, kind as cudaMemAllocationHandleType, 0),
    )
  },
}

/** A pool of memory that streams allocate from and free to in their order. */
export class MemoryPool extends MemoryPoolObject<Device> {
  private constructor(device: Device, handle: cudaMemPool_t, origin: PoolOrigin, handleTypes?: HandleKind[]) {
    super(device, handle, origin, calls, handleTypes)
  }

  /**
   * Makes a pool on the current device, or the one named (`cudaMemPoolCreate`).
   * @throws StatusError when the device cannot export as asked.
   */
  static create(options: MemoryPoolOptions = {}): MemoryPool {
    requireOptions(options, 'options', '{ handleTypes }')
    const maximum = requireInteger(options.maximumBytes ?? 0, 'maximumBytes', 0, Number.MAX_SAFE_INTEGER)
    const handleTypes = handleKindBits(options.handleTypes ?? [], 'MemoryPool.create') as cudaMemAllocationHandleType
    const device = deviceOrCurrent(options.device)
    const { type, id } = resolveDevice(device, 'MemoryPool.create')
    const properties = cudaMemPoolProps.allocate({
      allocType: cudaMemAllocationType.cudaMemAllocationTypePinned,
      handleTypes,
      location: { type: type as cudaMemLocationType, id },
      maxSize: BigInt(maximum),
    })
    const out = scratch()
    const create = (): void =>
      callOn(device.primaryContext, 'cudaMemPoolCreate', () => cudaMemPoolCreate(out, properties))
    withCreateReason(handleTypes, create)
    return new MemoryPool(device, out.u64[0] as cudaMemPool_t, 'owned', handleKindsOf(handleTypes))
  }

  /** The pool that came with the device (`cudaDeviceGetDefaultMemPool`). dispose() leaves it alone. */
  static defaultOf(device?: DeviceLike | number): MemoryPool {
    const of = deviceOrCurrent(device)
    const out = scratch()
    const { ordinal } = of
    callOn(of.primaryContext, 'cudaDeviceGetDefaultMemPool', () => cudaDeviceGetDefaultMemPool(out, ordinal))
    return new MemoryPool(of, out.u64[0] as cudaMemPool_t, 'borrowed')
  }

  /** The pool that streams of the device allocate from when none is named (`cudaDeviceGetMemPool`). */
  static currentOf(device?: DeviceLike | number): MemoryPool {
    const of = deviceOrCurrent(device)
    const out = scratch()
    const { ordinal } = of
    callOn(of.primaryContext, 'cudaDeviceGetMemPool', () => cudaDeviceGetMemPool(out, ordinal))
    return new MemoryPool(of, out.u64[0] as cudaMemPool_t, 'borrowed')
  }

  /**
   * A pool of `@shoal/driver` as one of this package: a `CUmemoryPool` and a `cudaMemPool_t` are the same handle. It is
   * borrowed: the other object must live as long as this one is used.
   */
  static from(pool: MemoryPoolObject): MemoryPool {
    if (pool instanceof MemoryPool) return pool
    if (!(pool instanceof MemoryPoolObject)) {
      throw new TypeError(`pool must be a MemoryPool, not ${describeValue(pool)}`)
    }
    return new MemoryPool(Device.get(pool.device.ordinal), pool.handle, 'borrowed')
  }

  /**
   * A pool that another process exported (`cudaMemPoolImportFromShareableHandle`). Nothing can be allocated from it;
   * {@link importPointer} takes what the other process allocated. The handle stays the caller's.
   */
  static import(handle: ShareableHandle<'pool'>, options: DeviceOption = {}): MemoryPool {
    requireOptions(options, 'options', '{ device }')
    const device = deviceOrCurrent(options.device)
    const { primaryContext } = device
    const imported = importHandle(handle, 'MemoryPool.import', 'pool', (from, kind) => {
      const out = scratch()
      callOn(primaryContext, 'cudaMemPoolImportFromShareableHandle', () =>
        cudaMemPoolImportFromShareableHandle(out, from, kind as cudaMemAllocationHandleType, 0),
      )
      return out.u64[0] as cudaMemPool_t
    })
    return new MemoryPool(device, imported, 'imported')
  }

  /** Makes it the pool that streams of its device allocate from (`cudaDeviceSetMemPool`). */
  setCurrent(): void {
    const { handle } = this
    const { ordinal } = this.device
    callOn(this._context, 'cudaDeviceSetMemPool', () => cudaDeviceSetMemPool(ordinal, handle))
  }

  /** Memory from this pool that work queued on `stream` can use, and that is freed on it (`cudaMallocFromPoolAsync`). */
  allocate<D extends DType>(stream: Stream, dtype: D, length: number): DeviceMemory<D> {
    requireStream(stream)
    const { handle } = this
    return DeviceMemory._allocateWith(dtype, length, (bytes) => Allocation.allocateFrom(this, handle, stream, bytes))
  }

  /** What another process that has imported this pool opens the memory with (`cudaMemPoolExportPointer`). */
  exportPointer<D extends DType>(memory: DeviceMemory<D>): PoolPointer<D> {
    this._requireAlive()
    if (!(memory instanceof DeviceMemory)) {
      throw new TypeError(`memory must be DeviceMemory, not ${describeValue(memory)}`)
    }
    const { address } = memory
    this._exportFirst()
    const out = scratch()
    withReason([Status.invalidValue], onlyItsOwn, () =>
      callOn(this._context, 'cudaMemPoolExportPointer', () => cudaMemPoolExportPointer(out, address)),
    )
    return poolPointerFrom(out.buffer, memory.dtype, memory.length)
  }

  /**
   * The memory that another process exported from this pool (`cudaMemPoolImportPointer`). Dispose of it before the
   * exporting process frees it.
   */
  importPointer<D extends DType>(stream: Stream, pointer: PoolPointer<D>): DeviceMemory<D> {
    const { handle } = this
    const data = poolPointerBytes(pointer)
    requireStream(stream)
    requireInteger(pointer.length, 'length', 1, Number.MAX_SAFE_INTEGER)
    return DeviceMemory._allocateWith(pointer.dtype, pointer.length, (bytes) => {
      const out = scratch()
      const { context } = stream
      callOn(context, 'cudaMemPoolImportPointer', () => cudaMemPoolImportPointer(out, handle, data))
      return requireImported(Allocation.adoptOn(stream, out.u64[0] as bigint, bytes, this))
    })
  }
}
