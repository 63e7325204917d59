import {
  type AccessGrant,
  check,
  checkRelease,
  describeValue,
  exportHandle,
  forgetLeak,
  type HandleKind,
  handleKindBits,
  importHandle,
  type MemoryAccess,
  type MemoryPlace,
  type MemoryPoolOptions,
  optionalBoolean,
  type PoolPointer,
  type PoolUsage,
  platformHandleKind,
  poolPointerBytes,
  poolPointerFrom,
  processIsEnding,
  Resource,
  type ReusePolicy,
  readAccess,
  requireInteger,
  requireOptions,
  resolveGrants,
  resolvePlace,
  type ShareableHandle,
  type ShareableHandleOf,
  scratch,
  startDriver,
  watchForLeak,
  writeGrants,
} from '@shoal/cuda-base'
import {
  type CUdeviceptr,
  type CUmemAllocationHandleType,
  CUmemAllocationType,
  CUmemLocation,
  type CUmemoryPool,
  CUmemPool_attribute,
  CUmemPoolProps,
  cuDeviceGetDefaultMemPool,
  cuDeviceGetMemPool,
  cuDeviceSetMemPool,
  cuMemGetAddressRange,
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
import type { DType } from '@shoal/types'
import type { Context } from '../context.js'
import type { Device } from '../device.js'
import { Stream } from '../stream.js'
import { Allocation } from './allocation.js'
import { DeviceBuffer } from './deviceBuffer.js'

export type { MemoryPoolOptions, PoolPointer, PoolUsage, ReusePolicy } from '@shoal/cuda-base'

type Origin = 'owned' | 'borrowed' | 'imported'

const attribute = CUmemPool_attribute

/** A pool of memory that streams allocate from and free to in their order. */
export class MemoryPool extends Resource {
  protected readonly kind = 'MemoryPool'
  readonly device: Device
  readonly #handle: CUmemoryPool
  readonly #origin: Origin
  readonly #context: Context

  private constructor(device: Device, handle: CUmemoryPool, origin: Origin) {
    super()
    this.device = device
    this.#handle = handle
    this.#origin = origin
    const context = device.primaryContext
    this.#context = context
    if (origin === 'borrowed') return
    context._addChild()
    watchForLeak(this, `A MemoryPool of device ${device.ordinal}`, () => {
      try {
        context._release('cuMemPoolDestroy', () => cuMemPoolDestroy(handle))
      } finally {
        context._removeChild()
      }
      return 'it is destroyed when nothing allocated from it is left'
    })
  }

  /** Makes a pool on a device (`cuMemPoolCreate`). @throws StatusError when the device cannot export as asked. */
  static create(device: Device, options: MemoryPoolOptions = {}): MemoryPool {
    requireOptions(options, 'options', '{ handleTypes }')
    startDriver()
    const { type, id } = resolvePlace(device, 'device')
    const maximum = requireInteger(options.maximumBytes ?? 0, 'maximumBytes', 0, Number.MAX_SAFE_INTEGER)
    const properties = CUmemPoolProps.allocate({
      allocType: CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED,
      handleTypes: handleKindBits(options.handleTypes ?? [], 'handleTypes') as CUmemAllocationHandleType,
      location: { type, id },
      maxSize: BigInt(maximum),
    })
    const out = scratch()
    check(cuMemPoolCreate(out, properties), 'cuMemPoolCreate')
    return new MemoryPool(device, out.u64[0] as CUmemoryPool, 'owned')
  }

  /** The pool that the driver made with the device (`cuDeviceGetDefaultMemPool`). dispose() leaves it alone. */
  static defaultOf(device: Device): MemoryPool {
    const out = scratch()
    const { handle } = device
    device.primaryContext._call('cuDeviceGetDefaultMemPool', () => cuDeviceGetDefaultMemPool(out, handle))
    return new MemoryPool(device, out.u64[0] as CUmemoryPool, 'borrowed')
  }

  /** The pool that streams of the device allocate from when none is named (`cuDeviceGetMemPool`). */
  static currentOf(device: Device): MemoryPool {
    const out = scratch()
    const { handle } = device
    device.primaryContext._call('cuDeviceGetMemPool', () => cuDeviceGetMemPool(out, handle))
    return new MemoryPool(device, out.u64[0] as CUmemoryPool, 'borrowed')
  }

  /**
   * A pool that another process exported (`cuMemPoolImportFromShareableHandle`). Nothing can be allocated from it;
   * {@link importPointer} takes what the other process allocated. The handle stays the caller's.
   */
  static import(handle: ShareableHandle<'pool'>, device: Device): MemoryPool {
    startDriver()
    const imported = importHandle(handle, 'pool', (from, kind) => {
      const out = scratch()
      const { primaryContext } = device
      primaryContext._call('cuMemPoolImportFromShareableHandle', () =>
        cuMemPoolImportFromShareableHandle(out, from, kind, 0),
      )
      return out.u64[0] as CUmemoryPool
    })
    return new MemoryPool(device, imported, 'imported')
  }

  /** The `CUmemoryPool`. @throws DisposedError */
  get handle(): CUmemoryPool {
    this._requireAlive()
    this.#context._requireAlive()
    return this.#handle
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

  /** Bytes that stay with the pool when the device is synchronised; more go back to the system. Default: 0. */
  get releaseThreshold(): number {
    return this.#get(attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
  }

  set releaseThreshold(bytes: number) {
    const most = Number.MAX_SAFE_INTEGER
    const value = bytes === Number.POSITIVE_INFINITY ? 2n ** 64n - 1n : BigInt(requireInteger(bytes, 'bytes', 0, most))
    this.#set(attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, value)
  }

  /** Bytes the pool has from the system. */
  get reserved(): PoolUsage {
    return this.#usage(attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
  }

  /** Bytes that programs have from the pool. */
  get used(): PoolUsage {
    return this.#usage(attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH)
  }

  /** Sets both high-water marks to what is there now. */
  resetHighWaterMarks(): void {
    this.#set(attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0n)
    this.#set(attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0n)
  }

  /** When freed memory may go to another stream. */
  get reuse(): ReusePolicy {
    return {
      followEventDependencies: this.#get(attribute.CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES) !== 0,
      opportunistic: this.#get(attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC) !== 0,
      internalDependencies: this.#get(attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) !== 0,
    }
  }

  /** Changes what is named and leaves the rest. */
  setReuse(policy: Partial<ReusePolicy>): void {
    requireOptions(policy, 'policy', '{ opportunistic: false }')
    const change = (code: CUmemPool_attribute, value: boolean | undefined, name: string): void => {
      if (value !== undefined) this.#set(code, optionalBoolean(value, name, true) ? 1n : 0n)
    }
    const { followEventDependencies, opportunistic, internalDependencies } = policy
    change(
      attribute.CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
      followEventDependencies,
      'followEventDependencies',
    )
    change(attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, opportunistic, 'opportunistic')
    change(attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, internalDependencies, 'internalDependencies')
  }

  /** Gives memory back to the system until at most this many bytes are kept (`cuMemPoolTrimTo`). */
  trimTo(bytesToKeep = 0): void {
    requireInteger(bytesToKeep, 'bytesToKeep', 0, Number.MAX_SAFE_INTEGER)
    const { handle } = this
    check(cuMemPoolTrimTo(handle, bytesToKeep), 'cuMemPoolTrimTo')
  }

  /** Lets further devices use what is allocated from the pool, or takes that back (`cuMemPoolSetAccess`). */
  setAccess(places: MemoryPlace | readonly MemoryPlace[], access: MemoryAccess): void {
    const { handle } = this
    const list = (Array.isArray(places) ? places : [places]) as readonly MemoryPlace[]
    const grants: AccessGrant[] = list.map((place) => ({ place, access }))
    const { memory, count } = writeGrants(resolveGrants(grants))
    if (count > 0) check(cuMemPoolSetAccess(handle, memory, count), 'cuMemPoolSetAccess')
  }

  /** What a device may do with what is allocated from the pool (`cuMemPoolGetAccess`). */
  getAccess(place: MemoryPlace): MemoryAccess {
    const { handle } = this
    const { type, id } = resolvePlace(place, 'place')
    const out = scratch()
    out.u64[0] = 0n
    check(cuMemPoolGetAccess(out, handle, CUmemLocation.allocate({ type, id })), 'cuMemPoolGetAccess')
    return readAccess(out.u32[0] as number)
  }

  /** A handle another process can import. Default: the platform's own kind. It is the caller's to dispose of. */
  export<K extends HandleKind = 'posix-fd'>(kind: K = platformHandleKind() as K): ShareableHandleOf<K, 'pool'> {
    const { handle } = this
    return exportHandle('pool', kind, 0, this.device.ordinal, (out, code) =>
      check(cuMemPoolExportToShareableHandle(out, handle, code, 0), 'cuMemPoolExportToShareableHandle'),
    )
  }

  /** What another process that has imported this pool opens the buffer with (`cuMemPoolExportPointer`). */
  exportPointer<D extends DType>(buffer: DeviceBuffer<D>): PoolPointer<D> {
    this._requireAlive()
    if (!(buffer instanceof DeviceBuffer))
      throw new TypeError(`buffer must be a DeviceBuffer, not ${describeValue(buffer)}`)
    const address = buffer.address as CUdeviceptr
    const out = scratch()
    check(cuMemPoolExportPointer(out, address), 'cuMemPoolExportPointer')
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
      const allocation = Allocation.adoptOn(stream, out.u64[0] as bigint, bytes, this)
      try {
        const address = allocation.address as CUdeviceptr
        context._call('cuMemGetAddressRange', () => cuMemGetAddressRange(out.address, out.address + 8n, address))
        const available = Number(out.u64[1])
        if (bytes <= available) return allocation
        throw new RangeError(`the pointer is said to be of ${bytes} bytes, and has ${available}`)
      } catch (error) {
        allocation.free()
        throw error
      }
    })
  }

  get [Symbol.toStringTag](): string {
    return 'MemoryPool'
  }

  /** Destroys it (`cuMemPoolDestroy`) as soon as nothing allocated from it is left. The default pool stays. */
  protected release(): void {
    if (this.#origin === 'borrowed') return
    forgetLeak(this)
    const context = this.#context
    try {
      if (!processIsEnding()) checkRelease(cuMemPoolDestroy(this.#handle), 'cuMemPoolDestroy')
    } finally {
      context._removeChild()
    }
  }

  #usage(current: CUmemPool_attribute, high: CUmemPool_attribute): PoolUsage {
    return { current: this.#get(current), high: this.#get(high) }
  }

  // Three attributes are an int, the others 64 bits: both are read as 64 bits from zeroed memory.
  #get(code: CUmemPool_attribute): number {
    const { handle } = this
    const out = scratch()
    out.u64[0] = 0n
    check(cuMemPoolGetAttribute(handle, code, out), 'cuMemPoolGetAttribute')
    const value = out.u64[0] as bigint
    return value === 2n ** 64n - 1n ? Number.POSITIVE_INFINITY : Number(value)
  }

  #set(code: CUmemPool_attribute, value: bigint): void {
    const { handle } = this
    const cell = scratch()
    cell.u64[0] = value
    check(cuMemPoolSetAttribute(handle, code, cell), 'cuMemPoolSetAttribute')
  }
}
