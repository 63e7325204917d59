import {
  type CUdevice,
  type CUdeviceptr,
  CUmemLocation,
  type CUmemoryPool,
  type CUmemPool_attribute,
  CUmemPoolProps,
} from '@shoal/cuda-sys/driver'
import {
  type DType,
  type ElementType,
  optionalBoolean,
  requireInstance,
  requireInteger,
  requireMade,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { forgetReach } from '../../core/context/peers.js'
import { Status } from '../../core/errors.js'
import { forgetLeak, Resource, releaseAfterFailure, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { requireStream, type Stream, streamFor } from '../../core/stream/stream.js'
import { exportHandle, importHandle } from '../handles/exchange.js'
import {
  type HandleKind,
  handleKindBits,
  handleKindsOf,
  platformHandleKind,
  withCreateReason,
  withReason,
} from '../handles/handleKinds.js'
import type { ShareableHandle, ShareableHandleOf } from '../handles/handles.js'
import { type MemoryAccess, readAccess, resolveSameAccess, writeGrants } from '../vmm/access.js'
import { type MemoryPlace, resolvePlace } from '../vmm/location.js'
import { Allocation, requireImported } from './allocation.js'
import { DeviceBuffer } from './deviceBuffer.js'
import { nameOfType } from './elementType.js'
import { PoolLifetime } from './poolLifetime.js'
import {
  type MemoryPoolOptions,
  onlyItsOwn,
  type PoolMemory,
  type PoolPointer,
  type PoolUsage,
  poolKeys,
  poolPointerBytes,
  poolPointerFrom,
  type ReusePolicy,
  resolvePoolMemory,
  reuseKeys,
} from './poolTypes.js'

/** `CUmemPool_attribute`. `cudaMemPoolAttr` uses the same numbers. */
const attributes = {
  followEventDependencies: 1,
  opportunistic: 2,
  internalDependencies: 3,
  releaseThreshold: 4,
  reservedCurrent: 5,
  reservedHigh: 6,
  usedCurrent: 7,
  usedHigh: 8,
} as const

/** Origin of a pool. dispose() does not destroy a borrowed pool. */
type PoolOrigin = 'owned' | 'borrowed' | 'imported'

/**
 * A pool of memory that streams allocate and free in stream order.
 *
 * @example
 * using pool = device.createMemoryPool()
 * pool.releaseThreshold = 2 ** 30 // keep a GiB instead of releasing it at each synchronization
 * const buffer = pool.allocate(stream, 'f32', 1024)
 * buffer.disposeOn(stream)
 */
export class MemoryPool extends Resource {
  protected readonly kind = 'MemoryPool'
  /** The context of the pool's device. */
  readonly context: Context
  readonly #handle: CUmemoryPool
  readonly #handleTypes: readonly HandleKind[] | undefined
  /** Undefined for a pool that this object must not destroy. */
  readonly #lifetime: PoolLifetime | undefined
  /** Kind of the pool's memory. */
  readonly memory: PoolMemory
  #wasExported = false

  /** @param handleTypes export kinds of the pool, if known */
  private constructor(
    context: Context,
    handle: CUmemoryPool,
    origin: PoolOrigin,
    memory: PoolMemory = 'device',
    handleTypes?: readonly HandleKind[],
  ) {
    requireMade(handle, 'MemoryPool', 'MemoryPool.create')
    super()
    this.memory = memory
    this.#handleTypes = handleTypes
    this.#handle = handle
    this.context = context
    if (origin === 'borrowed') return
    const lifetime = new PoolLifetime(context, handle)
    this.#lifetime = lifetime
    watchForLeak(this, `A MemoryPool of device ${context.device.ordinal}`, () => {
      lifetime.end()
      return 'it is destroyed when nothing allocated from it is left'
    })
  }

  /**
   * Creates a pool of a device's memory, or of host or managed memory for the device's work (`cuMemPoolCreate`,
   * `cudaMemPoolCreate`).
   * @throws TypeError, RangeError; StatusError when the device does not support this pool or a requested kind of
   * handle; FeatureNotSupportedError for host and managed memory on an older driver
   */
  static create(owner: DeviceOrContext, options: MemoryPoolOptions = {}): MemoryPool {
    return MemoryPool._create(owner, options, 'MemoryPool.create')
  }

  /** @internal Creates a pool. Errors name the function `api`. */
  static _create(owner: DeviceOrContext, options: MemoryPoolOptions, api: string): MemoryPool {
    const context = contextOf(owner, api)
    requireOptions(options, api, poolKeys)
    const { memory, allocType, location } = resolvePoolMemory(context, options, api)
    const handleTypes = handleKindBits(options.handleTypes === undefined ? [] : options.handleTypes, api)
    const { maximumBytes = 0 } = options
    const maximum = requireInteger(maximumBytes, api, 'maximumBytes', 0)
    const properties = CUmemPoolProps.allocate({
      allocType,
      handleTypes,
      location,
      maxSize: BigInt(maximum),
    })
    const out = scratch()
    withCreateReason(handleTypes, () => context._call('memPoolCreate', out, properties))
    const pool = new MemoryPool(context, out.u64[0] as CUmemoryPool, 'owned', memory, handleKindsOf(handleTypes))
    if (memory === 'host') pool.#grantOwner(api)
    return pool
  }

  /** Grants the owner access. By default only the host can use a host pool, but its memory is for the owner's work. */
  #grantOwner(api: string): void {
    const { memory, count } = writeGrants(resolveSameAccess(this.context, 'readWrite', api))
    try {
      this.context._call('memPoolSetAccess', this.#handle, memory.bytes, count)
    } catch (error) {
      releaseAfterFailure('A MemoryPool', () => this.dispose())
      throw error
    }
  }

  /**
   * Returns the device's default pool (`cuDeviceGetDefaultMemPool`, `cudaDeviceGetDefaultMemPool`). dispose() does not
   * destroy it.
   */
  static defaultOf(owner: DeviceOrContext): MemoryPool {
    return MemoryPool.#of(contextOf(owner, 'MemoryPool.defaultOf'), 'deviceGetDefaultMemPool')
  }

  /**
   * Returns the device's current pool, from which streams allocate by default (`cuDeviceGetMemPool`,
   * `cudaDeviceGetMemPool`).
   */
  static currentOf(owner: DeviceOrContext): MemoryPool {
    return MemoryPool.#of(contextOf(owner, 'MemoryPool.currentOf'), 'deviceGetMemPool')
  }

  static #of(context: Context, call: 'deviceGetDefaultMemPool' | 'deviceGetMemPool'): MemoryPool {
    const out = scratch()
    context._call(call, out, context._cuda.deviceArgument(context.device) as CUdevice)
    return new MemoryPool(context, out.u64[0] as CUmemoryPool, 'borrowed')
  }

  /**
   * Wraps a pool of another owner, such as one of `@shoal/driver` for `@shoal/runtime`. Both objects have the same
   * handle. The other object must live as long as this one is used.
   */
  static from(owner: DeviceOrContext, pool: MemoryPool): MemoryPool {
    const api = 'MemoryPool.from'
    const context = contextOf(owner, api)
    const { handle, memory, context: other } = requireInstance(pool, api, 'pool', MemoryPool) as MemoryPool
    if (other === context) return pool
    if (other._handle !== context._handle) throw wrongType(api, 'pool', 'a MemoryPool of the same device', pool)
    return new MemoryPool(context, handle, 'borrowed', memory)
  }

  /**
   * Imports a pool from another process (`cuMemPoolImportFromShareableHandle`, `cudaMemPoolImportFromShareableHandle`).
   *
   * This process cannot allocate from the pool. {@link importPointer} imports the other process's allocations. The
   * caller keeps owning the handle.
   */
  static import(owner: DeviceOrContext, handle: ShareableHandle<'pool'>): MemoryPool {
    const api = 'MemoryPool.import'
    const context = contextOf(owner, api)
    const imported = importHandle(handle, api, 'pool', (from, kind) => {
      const out = scratch()
      context._call('memPoolImportFromShareableHandle', out, from, kind, 0)
      return out.u64[0] as CUmemoryPool
    })
    return new MemoryPool(context, imported, 'imported')
  }

  /** The device of the memory, or the device whose work can use the memory. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** The handle, which is the same for the driver and the runtime. @throws DisposedError */
  get handle(): CUmemoryPool {
    this._requireAlive()
    this.context._requireAlive()
    return this.#handle
  }

  /** Bytes that the pool keeps at a synchronization. The pool returns further memory to the system. Default: 0. */
  get releaseThreshold(): number {
    return this.#get(attributes.releaseThreshold)
  }

  set releaseThreshold(bytes: number) {
    const value =
      bytes === Number.POSITIVE_INFINITY
        ? 2n ** 64n - 1n
        : BigInt(requireInteger(bytes, 'MemoryPool.releaseThreshold', 'bytes', 0))
    this.#set(attributes.releaseThreshold, value)
  }

  /** Bytes that the pool has from the system. */
  get reserved(): PoolUsage {
    return this.#usage(attributes.reservedCurrent, attributes.reservedHigh)
  }

  /** Bytes that programs have from the pool. */
  get used(): PoolUsage {
    return this.#usage(attributes.usedCurrent, attributes.usedHigh)
  }

  /** Resets both high-water marks to the current values. */
  resetHighWaterMarks(): void {
    this.#set(attributes.reservedHigh, 0n)
    this.#set(attributes.usedHigh, 0n)
  }

  /** Conditions for the reuse of freed memory by another stream. */
  get reuse(): ReusePolicy {
    return {
      followEventDependencies: this.#get(attributes.followEventDependencies) !== 0,
      opportunistic: this.#get(attributes.opportunistic) !== 0,
      internalDependencies: this.#get(attributes.internalDependencies) !== 0,
    }
  }

  /** Changes the given conditions and keeps the others. */
  setReuse(policy: Partial<ReusePolicy>): void {
    const api = 'MemoryPool.setReuse'
    requireOptions(policy, api, reuseKeys, 'policy')
    const change = (code: number, value: boolean | undefined, name: string): void => {
      if (value !== undefined) this.#set(code, optionalBoolean(value, api, `policy.${name}`, true) ? 1n : 0n)
    }
    const { followEventDependencies, opportunistic, internalDependencies } = policy
    change(attributes.followEventDependencies, followEventDependencies, 'followEventDependencies')
    change(attributes.opportunistic, opportunistic, 'opportunistic')
    change(attributes.internalDependencies, internalDependencies, 'internalDependencies')
  }

  /**
   * Returns memory to the system until the pool keeps at most `bytesToKeep` bytes. Memory that a stream freed counts
   * only after the driver has waited for that work: with `stream.synchronizeSync()` or a device wait.
   * `stream.synchronize()` is not such a wait, because it only queries an event.
   */
  trimTo(bytesToKeep = 0): void {
    requireInteger(bytesToKeep, 'MemoryPool.trimTo', 'bytesToKeep', 0)
    this.context._call('memPoolTrimTo', this.handle, bytesToKeep)
  }

  /** Sets the access of additional devices to the pool's memory (`cuMemPoolSetAccess`, `cudaMemPoolSetAccess`). */
  setAccess(places: MemoryPlace | readonly MemoryPlace[], access: MemoryAccess): void {
    const { handle } = this
    const { memory, count } = writeGrants(resolveSameAccess(places, access, 'MemoryPool.setAccess'))
    if (count > 0) this.context._call('memPoolSetAccess', handle, memory.bytes, count)
    if (access === 'none') forgetReach()
  }

  /** Returns a device's access to the pool's memory (`cuMemPoolGetAccess`, `cudaMemPoolGetAccess`). */
  getAccess(place: MemoryPlace): MemoryAccess {
    const { handle } = this
    const { type, id } = resolvePlace(place, 'MemoryPool.getAccess', 'place')
    const out = scratch()
    out.u64[0] = 0n
    this.context._call('memPoolGetAccess', out, handle, CUmemLocation.allocate({ type, id }))
    return readAccess(out.u32[0] as number)
  }

  /**
   * Exports the pool as a handle for another process (`cuMemPoolExportToShareableHandle`,
   * `cudaMemPoolExportToShareableHandle`). Default: the platform's own kind. Dispose of the handle after use.
   */
  export<K extends HandleKind = 'posix-fd'>(kind: K = platformHandleKind() as K): ShareableHandleOf<K, 'pool'> {
    const { handle, context } = this
    const handleTypes = (): readonly HandleKind[] | undefined => this.#handleTypes
    const thing = { content: 'pool', byteLength: 0, deviceOrdinal: context.device.ordinal, handleTypes } as const
    const exported = exportHandle(kind, 'MemoryPool.export', thing, (out, code) =>
      context._call('memPoolExportToShareableHandle', out, handle, code, 0),
    )
    this.#wasExported = true
    return exported
  }

  /**
   * Makes this pool the current pool of its device (`cuDeviceSetMemPool`, `cudaDeviceSetMemPool`).
   * @throws TypeError for a pool of host or managed memory
   */
  setCurrent(): void {
    const { handle, context } = this
    if (this.memory !== 'device') {
      throw new TypeError(
        `MemoryPool.setCurrent: this must be a pool of device memory, not of ${this.memory} memory: allocate() takes from it`,
      )
    }
    context._call('deviceSetMemPool', context._cuda.deviceArgument(context.device) as CUdevice, handle)
  }

  /**
   * Allocates memory that `stream` can use immediately and later frees (`cuMemAllocFromPoolAsync`,
   * `cudaMallocFromPoolAsync`).
   */
  allocate<E extends ElementType>(stream: Stream, dtype: E, length: number): DeviceBuffer<E> {
    const api = 'MemoryPool.allocate'
    requireStream(stream, api)
    const { handle } = this
    this.#requireAccessOf(stream.device, api)
    return DeviceBuffer._allocateWith(dtype, length, api, (bytes) =>
      Allocation.allocateFrom(this, handle, stream, bytes),
    )
  }

  /** Checks the device's access, because the memory's location does not depend on the stream. @throws TypeError */
  #requireAccessOf(device: Context['device'], api: string): void {
    const { memory } = this
    if (memory === 'managed' || (memory === 'device' && device.ordinal === this.context.device.ordinal)) return
    if (this.getAccess(device) !== 'none') return
    const reaching = "one that the pool's memory can be reached from (setAccess)"
    const own = memory === 'device' ? `of device ${this.context.device.ordinal}, or ` : ''
    const expected = `a stream ${own}of ${reaching}`
    throw wrongType(api, 'stream', expected, `one of device ${device.ordinal}`)
  }

  /**
   * Exports a buffer for a process that has imported this pool (`cuMemPoolExportPointer`, `cudaMemPoolExportPointer`).
   */
  exportPointer<E extends DType>(buffer: DeviceBuffer<E>): PoolPointer<E> {
    const api = 'MemoryPool.exportPointer'
    this._requireAlive()
    requireInstance(buffer, api, 'buffer', DeviceBuffer)
    if (typeof buffer.dtype !== 'string') {
      throw wrongType(api, 'buffer', 'of a dtype (reinterpret() it)', nameOfType(buffer.dtype))
    }
    const address = buffer.address as CUdeviceptr
    // Drivers export pointers of a pool only after they have exported the pool.
    const [kind] = this.#handleTypes ?? []
    if (!this.#wasExported && kind !== undefined) this.export(kind).dispose()
    const out = scratch()
    withReason([Status.invalidValue], onlyItsOwn, () => this.context._call('memPoolExportPointer', out, address))
    return poolPointerFrom(out.buffer, buffer.dtype, buffer.length)
  }

  /**
   * Imports a buffer that another process exported from this pool (`cuMemPoolImportPointer`,
   * `cudaMemPoolImportPointer`). Dispose of the buffer before the exporting process frees it.
   */
  importPointer<E extends DType>(stream: Stream, pointer: PoolPointer<E>): DeviceBuffer<E> {
    const api = 'MemoryPool.importPointer'
    const { handle } = this
    const data = poolPointerBytes(pointer, api)
    // Check here, because neither the driver nor the release would report a disposed stream or one of another device.
    streamFor(this.context, requireStream(stream, api), api)
    return DeviceBuffer._allocateWith(pointer.dtype, pointer.length, api, (bytes) => {
      const out = scratch()
      stream.context._call('memPoolImportPointer', out, handle, data)
      return requireImported(Allocation.adoptOn(stream, out.u64[0] as bigint, bytes, this), api)
    })
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { memory } = this
    const kind = memory === 'device' ? {} : { memory }
    return { device: this.context.device.ordinal, ...kind, handle: this.#handle }
  }

  /** @internal Counts the memory of the pool; undefined for a pool that this process does not destroy. */
  get _lifetime(): PoolLifetime | undefined {
    return this.#lifetime ?? PoolLifetime.of(this.#handle)
  }

  /** Destroys the pool when its last memory is freed. The default pool is never destroyed. */
  protected release(): void {
    if (this.#lifetime === undefined) return
    forgetLeak(this)
    this.#lifetime.end()
  }

  #usage(current: number, high: number): PoolUsage {
    return { current: this.#get(current), high: this.#get(high) }
  }

  // Three attributes are an int, the others have 64 bits. All are read as 64 bits from zeroed memory.
  #get(code: number): number {
    const out = scratch()
    out.u64[0] = 0n
    this.context._call('memPoolGetAttribute', this.handle, code as CUmemPool_attribute, out)
    const value = out.u64[0] as bigint
    return value === 2n ** 64n - 1n ? Number.POSITIVE_INFINITY : Number(value)
  }

  #set(code: number, value: bigint): void {
    const { handle } = this
    const cell = scratch()
    cell.u64[0] = value
    this.context._call('memPoolSetAttribute', handle, code as CUmemPool_attribute, cell)
  }
}
