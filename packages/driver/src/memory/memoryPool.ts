import {
  check,
  checkRelease,
  type HandleKind,
  handleKindBits,
  handleKindsOf,
  importHandle,
  MemoryPoolObject,
  type MemoryPoolOptions,
  onlyItsOwn,
  type PoolCalls,
  type PoolOrigin,
  type PoolPointer,
  poolPointerBytes,
  poolPointerFrom,
  requireDevice,
  requireImported,
  requireInteger,
  requireOptions,
  resolveDevice,
  type ShareableHandle,
  Status,
  scratch,
  startDriver,
  withCreateReason,
  withReason,
} from '@shoal/cuda-base'
import {
  type CUdeviceptr,
  CUmemAllocationType,
  type CUmemoryPool,
  type CUmemPool_attribute,
  CUmemPoolProps,
  cuDeviceGetDefaultMemPool,
  cuDeviceGetMemPool,
  cuDeviceSetMemPool,
  cuMemPoolCreate,
  cuMemPoolDestroy,
  cuMemPoolExportPointer,
  cuMemPoolExportToShareableHandle,
  cuMemPoolGetAccess,
  cuMemPoolGetAttribute,
  cuMemPoolImportFromShareableHandle,
  cuMemPoolImportPointer,
  cuMemPoolSetAccess,
  cuMemPoolSetAttribute,
  cuMemPoolTrimTo,
} from '@shoal/cuda-sys/driver'
import { type DType, describeValue } from '@shoal/types'
import type { Device } from '../device.js'
import { Stream } from '../stream.js'
import { Allocation } from './allocation.js'
import { DeviceBuffer } from './deviceBuffer.js'

export type { MemoryPoolOptions, PoolPointer, PoolUsage, ReusePolicy } from '@shoal/cuda-base'

const calls: PoolCalls = {
  destroy(_, pool) {
    checkRelease(cuMemPoolDestroy(pool), 'cuMemPoolDestroy')
  },
  getAttribute(_, pool, code, out) {
    check(cuMemPoolGetAttribute(pool, code as CUmemPool_attribute, out), 'cuMemPoolGetAttribute')
  },
  setAttribute(_, pool, code, value) {
    check(cuMemPoolSetAttribute(pool, code as CUmemPool_attribute, value), 'cuMemPoolSetAttribute')
  },
  trimTo(_, pool, bytesToKeep) {
    check(cuMemPoolTrimTo(pool, bytesToKeep), 'cuMemPoolTrimTo')
  },
  setAccess(_, pool, descriptions, count) {
    check(cuMemPoolSetAccess(pool, descriptions, count), 'cuMemPoolSetAccess')
  },
  getAccess(_, pool, out, location) {
    check(cuMemPoolGetAccess(out, pool, location), 'cuMemPoolGetAccess')
  },
  exportTo(_, pool, out, kind) {
    check(cuMemPoolExportToShareableHandle(out, pool, kind, 0), 'cuMemPoolExportToShareableHandle')
  },
}

/** A pool of memory that streams allocate from and free to in their order. */
export class MemoryPool extends MemoryPoolObject<Device> {
  private constructor(device: Device, handle: CUmemoryPool, origin: PoolOrigin, handleTypes?: HandleKind[]) {
    super(device, handle, origin, calls, handleTypes)
  }

  /** Makes a pool on a device (`cuMemPoolCreate`). @throws StatusError when the device cannot export as asked. */
  static create(device: Device, options: MemoryPoolOptions = {}): MemoryPool {
    requireOptions(options, 'options', '{ handleTypes }')
    startDriver()
    const { type, id } = resolveDevice(requireDevice(device, 'device'), 'MemoryPool.create')
    const handleTypes = handleKindBits(options.handleTypes ?? [], 'MemoryPool.create')
    const maximum = requireInteger(options.maximumBytes ?? 0, 'maximumBytes', 0, Number.MAX_SAFE_INTEGER)
    const properties = CUmemPoolProps.allocate({
      allocType: CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED,
      handleTypes,
      location: { type, id },
      maxSize: BigInt(maximum),
    })
    const out = scratch()
    withCreateReason(handleTypes, () => check(cuMemPoolCreate(out, properties), 'cuMemPoolCreate'))
    return new MemoryPool(device, out.u64[0] as CUmemoryPool, 'owned', handleKindsOf(handleTypes))
  }

  /** The pool that the driver made with the device (`cuDeviceGetDefaultMemPool`). dispose() leaves it alone. */
  static defaultOf(device: Device): MemoryPool {
    const out = scratch()
    const { handle } = requireDevice(device, 'device')
    device.primaryContext._call('cuDeviceGetDefaultMemPool', () => cuDeviceGetDefaultMemPool(out, handle))
    return new MemoryPool(device, out.u64[0] as CUmemoryPool, 'borrowed')
  }

  /** The pool that streams of the device allocate from when none is named (`cuDeviceGetMemPool`). */
  static currentOf(device: Device): MemoryPool {
    const out = scratch()
    const { handle } = requireDevice(device, 'device')
    device.primaryContext._call('cuDeviceGetMemPool', () => cuDeviceGetMemPool(out, handle))
    return new MemoryPool(device, out.u64[0] as CUmemoryPool, 'borrowed')
  }

  /**
   * A pool that another process exported (`cuMemPoolImportFromShareableHandle`). Nothing can be allocated from it;
   * {@link importPointer} takes what the other process allocated. The handle stays the caller's.
   */
  static import(handle: ShareableHandle<'pool'>, device: Device): MemoryPool {
    startDriver()
    requireDevice(device, 'device')
    const imported = importHandle(handle, 'MemoryPool.import', 'pool', (from, kind) => {
      const out = scratch()
      const { primaryContext } = device
      primaryContext._call('cuMemPoolImportFromShareableHandle', () =>
        cuMemPoolImportFromShareableHandle(out, from, kind, 0),
      )
      return out.u64[0] as CUmemoryPool
    })
    return new MemoryPool(device, imported, 'imported')
  }

  /** Makes it the pool that streams of its device allocate from (`cuDeviceSetMemPool`). */
  setCurrent(): void {
    const { handle } = this
    check(cuDeviceSetMemPool(this.device.handle, handle), 'cuDeviceSetMemPool')
  }

  /** Memory from this pool that work queued on `stream` can use, and that is freed on it (`cuMemAllocFromPoolAsync`). */
  allocate<D extends DType>(stream: Stream, dtype: D, length: number): DeviceBuffer<D> {
    if (!(stream instanceof Stream)) throw new TypeError(`stream must be a Stream, not ${describeValue(stream)}`)
    const { handle } = this
    return DeviceBuffer._allocateWith(dtype, length, (bytes) => Allocation.allocateFrom(this, handle, stream, bytes))
  }

  /** What another process that has imported this pool opens the buffer with (`cuMemPoolExportPointer`). */
  exportPointer<D extends DType>(buffer: DeviceBuffer<D>): PoolPointer<D> {
    this._requireAlive()
    if (!(buffer instanceof DeviceBuffer))
      throw new TypeError(`buffer must be a DeviceBuffer, not ${describeValue(buffer)}`)
    const address = buffer.address as CUdeviceptr
    this._exportFirst()
    const out = scratch()
    withReason([Status.invalidValue], onlyItsOwn, () =>
      check(cuMemPoolExportPointer(out, address), 'cuMemPoolExportPointer'),
    )
    return poolPointerFrom(out.buffer, buffer.dtype, buffer.length)
  }

  /**
   * The buffer that another process exported from this pool (`cuMemPoolImportPointer`). Dispose of it before the
   * exporting process frees it.
   */
  importPointer<D extends DType>(stream: Stream, pointer: PoolPointer<D>): DeviceBuffer<D> {
    const { handle } = this
    const data = poolPointerBytes(pointer)
    if (!(stream instanceof Stream)) throw new TypeError(`stream must be a Stream, not ${describeValue(stream)}`)
    requireInteger(pointer.length, 'length', 1, Number.MAX_SAFE_INTEGER)
    return DeviceBuffer._allocateWith(pointer.dtype, pointer.length, (bytes) => {
      const out = scratch()
      const { context } = stream
      context._call('cuMemPoolImportPointer', () => cuMemPoolImportPointer(out, handle, data))
      return requireImported(Allocation.adoptOn(stream, out.u64[0] as bigint, bytes, this))
    })
  }
}
