import { type CUmemAllocationHandleType, CUmemLocation, type CUmemoryPool } from '@shoal/cuda-sys/driver'
import type { NativeMemory } from '@shoal/ffi'
import { optionalBoolean, requireInteger, requireOptions } from '../checks.js'
import type { Context, DeviceWithContext } from '../context.js'
import { forgetLeak, Resource, watchForLeak } from '../lifetime.js'
import { scratch } from '../native.js'
import { exportHandle } from '../share/exchange.js'
import { type HandleKind, platformHandleKind } from '../share/handleKinds.js'
import type { ShareableHandleOf } from '../share/handles.js'
import { type MemoryAccess, readAccess, resolveSameAccess, writeGrants } from '../vmm/access.js'
import { type MemoryPlace, resolvePlace } from '../vmm/location.js'
import { PoolLife } from './poolLife.js'
import type { PoolUsage, ReusePolicy } from './poolTypes.js'

/** What acts on a pool, by the functions of the driver or of the runtime. Each checks its status. */
export interface PoolCalls {
  destroy(context: Context, pool: CUmemoryPool): void
  getAttribute(context: Context, pool: CUmemoryPool, code: number, out: NativeMemory): void
  setAttribute(context: Context, pool: CUmemoryPool, code: number, value: NativeMemory): void
  trimTo(context: Context, pool: CUmemoryPool, bytesToKeep: number): void
  setAccess(context: Context, pool: CUmemoryPool, descriptions: Uint8Array, count: number): void
  getAccess(context: Context, pool: CUmemoryPool, out: NativeMemory, location: Uint8Array): void
  exportTo(context: Context, pool: CUmemoryPool, out: NativeMemory, kind: CUmemAllocationHandleType): void
}

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
export type PoolOrigin = 'owned' | 'borrowed' | 'imported'

/** A pool of memory that streams allocate from and free to in their order. */
export abstract class MemoryPoolObject<D extends DeviceWithContext = DeviceWithContext> extends Resource {
  protected readonly kind = 'MemoryPool'
  readonly device: D
  /** @internal */
  readonly _context: Context
  readonly #handle: CUmemoryPool
  readonly #calls: PoolCalls
  readonly #handleTypes: readonly HandleKind[] | undefined
  /** Undefined for a pool that is not ours to destroy. */
  readonly #life: PoolLife | undefined
  #wasExported = false

  /** @param handleTypes kinds it can be exported as, where that is known. */
  protected constructor(
    device: D,
    handle: CUmemoryPool,
    origin: PoolOrigin,
    calls: PoolCalls,
    handleTypes?: readonly HandleKind[],
  ) {
    super()
    this.#handleTypes = handleTypes
    this.device = device
    this.#handle = handle
    this.#calls = calls
    const context = device.primaryContext
    this._context = context
    if (origin === 'borrowed') return
    const life = new PoolLife(context, handle, calls.destroy)
    this.#life = life
    watchForLeak(this, `A MemoryPool of device ${device.ordinal}`, () => {
      life.end()
      return 'it is destroyed when nothing allocated from it is left'
    })
  }

  /** The handle, the same for the driver and the runtime. @throws DisposedError */
  get handle(): CUmemoryPool {
    this._requireAlive()
    this._context._requireAlive()
    return this.#handle
  }

  /** Bytes that stay with the pool when the device is synchronised; more go back to the system. Default: 0. */
  get releaseThreshold(): number {
    return this.#get(attributes.releaseThreshold)
  }

  set releaseThreshold(bytes: number) {
    const most = Number.MAX_SAFE_INTEGER
    const value =
      bytes === Number.POSITIVE_INFINITY ? 2n ** 64n - 1n : BigInt(requireInteger(bytes, 'releaseThreshold', 0, most))
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
    requireOptions(policy, 'policy', '{ opportunistic: false }')
    const change = (code: number, value: boolean | undefined, name: string): void => {
      if (value !== undefined) this.#set(code, optionalBoolean(value, name, true) ? 1n : 0n)
    }
    const { followEventDependencies, opportunistic, internalDependencies } = policy
    change(attributes.followEventDependencies, followEventDependencies, 'followEventDependencies')
    change(attributes.opportunistic, opportunistic, 'opportunistic')
    change(attributes.internalDependencies, internalDependencies, 'internalDependencies')
  }

  /**
   * Gives memory back to the system until at most this many bytes are kept. Memory that was freed on a stream counts once a
   * wait of the driver itself has seen that work end: `stream.synchronizeSync()` or a wait for the device, not
   * `stream.synchronize()`, which only asks about an event.
   */
  trimTo(bytesToKeep = 0): void {
    requireInteger(bytesToKeep, 'bytesToKeep', 0, Number.MAX_SAFE_INTEGER)
    const { handle } = this
    this.#calls.trimTo(this._context, handle, bytesToKeep)
  }

  /** Lets further devices use what is allocated from the pool, or takes that back. */
  setAccess(places: MemoryPlace | readonly MemoryPlace[], access: MemoryAccess): void {
    const { handle } = this
    const { memory, count } = writeGrants(resolveSameAccess(places, access, 'MemoryPool.setAccess'))
    if (count > 0) this.#calls.setAccess(this._context, handle, memory.bytes, count)
  }

  /** What a device may do with what is allocated from the pool. */
  getAccess(place: MemoryPlace): MemoryAccess {
    const { handle } = this
    const { type, id } = resolvePlace(place, 'MemoryPool.getAccess', 'place')
    const out = scratch()
    out.u64[0] = 0n
    this.#calls.getAccess(this._context, handle, out, CUmemLocation.allocate({ type, id }))
    return readAccess(out.u32[0] as number)
  }

  /** A handle another process can import. Default: the platform's own kind. It is the caller's to dispose of. */
  export<K extends HandleKind = 'posix-fd'>(kind: K = platformHandleKind() as K): ShareableHandleOf<K, 'pool'> {
    const { handle } = this
    const handleTypes = (): readonly HandleKind[] | undefined => this.#handleTypes
    const thing = { content: 'pool', byteLength: 0, deviceOrdinal: this.device.ordinal, handleTypes } as const
    const exported = exportHandle(kind, 'MemoryPool.export', thing, (out, code) =>
      this.#calls.exportTo(this._context, handle, out, code),
    )
    this.#wasExported = true
    return exported
  }

  /** @internal Drivers export pointers of a pool only once they have exported the pool. */
  _exportFirst(): void {
    this._requireAlive()
    const [kind] = this.#handleTypes ?? []
    if (!this.#wasExported && kind !== undefined) this.export(kind).dispose()
  }

  get [Symbol.toStringTag](): string {
    return 'MemoryPool'
  }

  /** @internal What memory from it counts at; undefined for a pool that nobody here destroys. */
  get _life(): PoolLife | undefined {
    return this.#life ?? PoolLife.of(this.#handle)
  }

  /** Destroys it as soon as nothing allocated from it is left. The default pool stays. */
  protected release(): void {
    if (this.#life === undefined) return
    forgetLeak(this)
    this.#life.end()
  }

  #usage(current: number, high: number): PoolUsage {
    return { current: this.#get(current), high: this.#get(high) }
  }

  // Three attributes are an int, the others 64 bits: both are read as 64 bits from zeroed memory.
  #get(code: number): number {
    const { handle } = this
    const out = scratch()
    out.u64[0] = 0n
    this.#calls.getAttribute(this._context, handle, code, out)
    const value = out.u64[0] as bigint
    return value === 2n ** 64n - 1n ? Number.POSITIVE_INFINITY : Number(value)
  }

  #set(code: number, value: bigint): void {
    const { handle } = this
    const cell = scratch()
    cell.u64[0] = value
    this.#calls.setAttribute(this._context, handle, code, cell)
  }
}
