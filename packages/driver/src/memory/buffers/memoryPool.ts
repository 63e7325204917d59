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

/** `CUmemPool_attribute`, which `cudaMemPoolAttr` has the same numbers as. */
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

/** Where a pool comes from: a borrowed one is left alone by dispose(). */
type PoolOrigin = 'owned' | 'borrowed' | 'imported'

/**
 * A pool of memory that streams allocate from and free to in their order.
 *
 * @example
 * using pool = device.createMemoryPool()
 * pool.releaseThreshold = 2 ** 30 // keep a GiB instead of giving it back at each synchronization
 * const buffer = pool.allocate(stream, 'f32', 1024)
 * buffer.disposeOn(stream)
 */
export class MemoryPool extends Resource {
  protected readonly kind = 'MemoryPool'
  /** The context of its device. */
  readonly context: Context
  readonly #handle: CUmemoryPool
  readonly #handleTypes: readonly HandleKind[] | undefined
  /** Undefined for a pool that is not ours to destroy. */
  readonly #lifetime: PoolLifetime | undefined
  /** The kind of memory it has. */
  readonly memory: PoolMemory
  #wasExported = false

  /** @param handleTypes kinds it can be exported as, where that is known. */
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
   * Makes a pool on a device, or of host or managed memory for work of that device (`cuMemPoolCreate`,
   * `cudaMemPoolCreate`).
   * @throws TypeError, RangeError; StatusError when the device cannot export as asked, or has no such pools;
   * FeatureNotSupportedError for host and managed memory on an older driver
   */
  static create(owner: DeviceOrContext, options: MemoryPoolOptions = {}): MemoryPool {
    return MemoryPool._create(owner, options, 'MemoryPool.create')
  }

  /** @internal The same for another function, which errors name. */
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

  /** At first only the host can use a host's pool, but its memory is for work of the owner. */
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
   * The pool that came with the device (`cuDeviceGetDefaultMemPool`, `cudaDeviceGetDefaultMemPool`). dispose() leaves
   * it alone.
   */
  static defaultOf(owner: DeviceOrContext): MemoryPool {
    return MemoryPool.#of(contextOf(owner, 'MemoryPool.defaultOf'), 'deviceGetDefaultMemPool')
  }

  /**
   * The pool that streams of the device allocate from when none is named (`cuDeviceGetMemPool`,
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
   * A pool of another owner, such as one of `@shoal/driver` for `@shoal/runtime`, as one of `owner`: the same handle.
   * It is borrowed: the other object must live as long as this one is used.
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
   * A pool that another process exported (`cuMemPoolImportFromShareableHandle`,
   * `cudaMemPoolImportFromShareableHandle`). Nothing can be allocated from it; {@link importPointer} takes what the
   * other process allocated. The handle stays the caller's.
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

  /** The device whose memory it has, or whose work can use its memory. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** The handle, the same for the driver and the runtime. @throws DisposedError */
  get handle(): CUmemoryPool {
    this._requireAlive()
    this.context._requireAlive()
    return this.#handle
  }

  /** Bytes that stay with the pool when the device is synchronised; more go back to the system. Default: 0. */
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

  /** Bytes the pool has from the system. */
  get reserved(): PoolUsage {
    return this.#usage(attributes.reservedCurrent, attributes.reservedHigh)
  }

  /** Bytes that programs have from the pool. */
  get used(): PoolUsage {
    return this.#usage(attributes.usedCurrent, attributes.usedHigh)
  }

  /** Sets both high-water marks to what is there now. */
  resetHighWaterMarks(): void {
    this.#set(attributes.reservedHigh, 0n)
    this.#set(attributes.usedHigh, 0n)
  }

  /** When freed memory may go to another stream. */
  get reuse(): ReusePolicy {
    return {
      followEventDependencies: this.#get(attributes.followEventDependencies) !== 0,
      opportunistic: this.#get(attributes.opportunistic) !== 0,
      internalDependencies: this.#get(attributes.internalDependencies) !== 0,
    }
  }

  /** Changes what is named and leaves the rest. */
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
   * Gives memory back to the system until at most this many bytes are kept. Memory that was freed on a stream counts
   * once a wait of the driver itself has seen that work end: `stream.synchronizeSync()` or a wait for the device, not
   * `stream.synchronize()`, which only asks about an event.
   */
  trimTo(bytesToKeep = 0): void {
    requireInteger(bytesToKeep, 'MemoryPool.trimTo', 'bytesToKeep', 0)
    this.context._call('memPoolTrimTo', this.handle, bytesToKeep)
  }

  /**
   * Lets further devices use what is allocated from the pool, or takes that back (`cuMemPoolSetAccess`,
   * `cudaMemPoolSetAccess`).
   */
  setAccess(places: MemoryPlace | readonly MemoryPlace[], access: MemoryAccess): void {
    const { handle } = this
    const { memory, count } = writeGrants(resolveSameAccess(places, access, 'MemoryPool.setAccess'))
    if (count > 0) this.context._call('memPoolSetAccess', handle, memory.bytes, count)
    if (access === 'none') forgetReach()
  }

  /** What a device may do with what is allocated from the pool (`cuMemPoolGetAccess`, `cudaMemPoolGetAccess`). */
  getAccess(place: MemoryPlace): MemoryAccess {
    const { handle } = this
    const { type, id } = resolvePlace(place, 'MemoryPool.getAccess', 'place')
    const out = scratch()
    out.u64[0] = 0n
    this.context._call('memPoolGetAccess', out, handle, CUmemLocation.allocate({ type, id }))
    return readAccess(out.u32[0] as number)
  }

  /**
   * A handle another process can import (`cuMemPoolExportToShareableHandle`, `cudaMemPoolExportToShareableHandle`).
   * Default: the platform's own kind. It is the caller's to dispose of.
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
   * Makes it the pool that streams of its device allocate from (`cuDeviceSetMemPool`, `cudaDeviceSetMemPool`).
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
   * Memory from this pool that work queued on `stream` can use, and that is freed on it (`cuMemAllocFromPoolAsync`,
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

  /** Its memory lies in its own place, whatever the stream. @throws TypeError */
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
   * What another process that has imported this pool opens the buffer with (`cuMemPoolExportPointer`,
   * `cudaMemPoolExportPointer`).
   */
  exportPointer<E extends DType>(buffer: DeviceBuffer<E>): PoolPointer<E> {
    const api = 'MemoryPool.exportPointer'
    this._requireAlive()
    requireInstance(buffer, api, 'buffer', DeviceBuffer)
    if (typeof buffer.dtype !== 'string') {
      throw wrongType(api, 'buffer', 'of a dtype (reinterpret() it)', nameOfType(buffer.dtype))
    }
    const address = buffer.address as CUdeviceptr
    // Drivers export pointers of a pool only once they have exported the pool.
    const [kind] = this.#handleTypes ?? []
    if (!this.#wasExported && kind !== undefined) this.export(kind).dispose()
    const out = scratch()
    withReason([Status.invalidValue], onlyItsOwn, () => this.context._call('memPoolExportPointer', out, address))
    return poolPointerFrom(out.buffer, buffer.dtype, buffer.length)
  }

  /**
   * The buffer that another process exported from this pool (`cuMemPoolImportPointer`, `cudaMemPoolImportPointer`).
   * Dispose of it before the exporting process frees it.
   */
  importPointer<E extends DType>(stream: Stream, pointer: PoolPointer<E>): DeviceBuffer<E> {
    const api = 'MemoryPool.importPointer'
    const { handle } = this
    const data = poolPointerBytes(pointer, api)
    // Neither the driver nor what frees the memory would say that the stream is gone, or another device's.
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

  /** @internal What memory from it counts at; undefined for a pool that nobody here destroys. */
  get _lifetime(): PoolLifetime | undefined {
    return this.#lifetime ?? PoolLifetime.of(this.#handle)
  }

  /** Destroys it as soon as nothing allocated from it is left. The default pool stays. */
  protected release(): void {
    if (this.#lifetime === undefined) return
    forgetLeak(this)
    this.#lifetime.end()
  }

  #usage(current: number, high: number): PoolUsage {
    return { current: this.#get(current), high: this.#get(high) }
  }

  // Three attributes are an int, the others 64 bits: both are read as 64 bits from zeroed memory.
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
