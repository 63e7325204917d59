import { named } from '@shoal/cuda-base/basics'
import { nvshmem_ptr, nvshmemx_mc_ptr } from '@shoal/nvshmem-sys'
import {
  type DType,
  describeValue,
  dtypeInfo,
  type HostValueOf,
  isMemoryLike,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type StorageArray,
  type TypedArrayOf,
  toMemoryRange,
} from '@shoal/types'
import { requireCount, requirePe } from '../checks.js'
import { nvshmemError } from '../errors.js'
import type { WaitOptions } from '../queue/callQueue.js'
import type { SessionTeam } from '../teams/teamParts.js'
import { type Allocation, allocate, type HeapOptions } from './allocation.js'
import {
  copyBetween,
  copyBetweenSync,
  download,
  downloadSync,
  type Filling,
  fill,
  fillSync,
  requireArrayFor,
  upload,
  uploadSync,
} from './hostCopies.js'
import { PeerMemory } from './peerMemory.js'

/** What can be copied into symmetric memory: a typed array, or memory that CUDA reaches. */
export type CopySource<D extends DType> = TypedArrayOf<D> | MemoryLike

/**
 * Typed memory that every PE has at the same place of its symmetric heap, or a view of a part of it. Transfers, atomics
 * and collectives name it to mean the memory of any PE; on its own device it is memory like any other, also for kernels,
 * for the copies of `@shoal/driver` and for NCCL (by the memory protocol).
 *
 * All PEs allocate it together and give it back together: `dispose()` waits for the others. The garbage collector only
 * reports a buffer that was forgotten.
 */
export class SymmetricBuffer<D extends DType = DType> implements MemoryLike {
  /** Type of the elements. */
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  /** Size in bytes. */
  readonly byteLength: number
  readonly #allocation: Allocation
  readonly #offset: number
  readonly #address: bigint
  #range: MemoryRange | undefined

  private constructor(allocation: Allocation, offset: number, dtype: D, length: number) {
    this.#allocation = allocation
    this.#offset = offset
    this.#address = allocation.address + BigInt(offset)
    this.dtype = dtype
    this.length = length
    this.byteLength = length * dtypeInfo(dtype).bytes
  }

  /** @internal */
  static _is(value: unknown): value is SymmetricBuffer {
    return typeof value === 'object' && value !== null && #allocation in value
  }

  /** @internal The whole of an allocation. */
  static _of<D extends DType>(allocation: Allocation, dtype: D, length: number): SymmetricBuffer<D> {
    return new SymmetricBuffer(allocation, 0, dtype, length)
  }

  /** @internal */
  get _allocation(): Allocation {
    return this.#allocation
  }

  /** @internal The address without the check that it is still there. */
  get _address(): bigint {
    return this.#address
  }

  /** @internal What the memory protocol tells, for an operation that the error names. @throws DisposedError */
  _rangeFor(operation?: string): MemoryRange {
    this.#allocation.requireUsable(operation)
    const { device, context } = this.#allocation.live
    // Frozen: whoever checked it once may recognise it.
    this.#range ??= Object.freeze({
      version: 0,
      address: this.#address,
      byteLength: this.byteLength,
      deviceOrdinal: device,
      context,
      dtype: this.dtype,
      length: this.length,
    })
    return this.#range
  }

  /** Address of the first element in this PE. @throws DisposedError */
  get address(): bigint {
    this.#allocation.requireUsable()
    return this.#address
  }

  /** Ordinal of the device that holds this PE's memory. */
  get device(): number {
    return this.#allocation.live.device
  }

  /** Whether `dispose()` was called, for this buffer or for the one it is a view of. */
  get disposed(): boolean {
    return this.#allocation.freed
  }

  /**
   * The elements from `start` up to, not including, `end`, as a view without a copy; negative numbers count from the end.
   *
   * @throws RangeError when the range does not lie within the buffer.
   */
  slice(start = 0, end: number = this.length): SymmetricBuffer<D> {
    this.#allocation.requireUsable('slice')
    for (const [name, at] of Object.entries({ start, end })) {
      if (typeof at !== 'number') {
        throw new TypeError(`SymmetricBuffer.slice: ${name} must be a number, got ${describeValue(at)}`)
      }
    }
    const [first, last] = [start, end].map((at) => (at < 0 ? at + this.length : at)) as [number, number]
    if (!Number.isInteger(first) || !Number.isInteger(last) || first < 0 || last > this.length || first > last) {
      throw new RangeError(
        `SymmetricBuffer.slice: ${describeValue(start)} … ${describeValue(end)} does not lie within 0 … ${this.length}`,
      )
    }
    const offset = this.#offset + first * dtypeInfo(this.dtype).bytes
    return new SymmetricBuffer(this.#allocation, offset, this.dtype, last - first)
  }

  /** The same as {@link slice}: the name typed arrays have for a view. */
  subarray(start = 0, end: number = this.length): SymmetricBuffer<D> {
    return this.slice(start, end)
  }

  /** The same bytes as elements of another dtype, without a copy. @throws RangeError when they do not fit. */
  reinterpret<E extends DType>(dtype: E): SymmetricBuffer<E> {
    this.#allocation.requireUsable('reinterpret')
    const { bytes, alignment } = dtypeInfo(dtype)
    if (this.byteLength % bytes !== 0 || this.#address % BigInt(alignment) !== 0n) {
      throw new RangeError(
        `SymmetricBuffer.reinterpret: ${this.byteLength} bytes at 0x${this.#address.toString(16)} are no whole, aligned ` +
          `elements of ${dtype}`,
      )
    }
    return new SymmetricBuffer(this.#allocation, this.#offset, dtype, this.byteLength / bytes)
  }

  /**
   * Copies the whole of `source`, which must be as long as this buffer, into this PE's memory. Takes its turn among the
   * calls of the session; settles when the data is there.
   *
   * @throws TypeError for another dtype, RangeError for another length, DisposedError, StatusError.
   */
  async copyFrom(source: CopySource<D>, wait?: WaitOptions): Promise<this> {
    const api = 'SymmetricBuffer.copyFrom'
    const { live } = this.#use(api)
    const from = this.#operand(source, api, 'source')
    if ('buffer' in from) await upload(live, this.#address, from, wait, api)
    else {
      const keep = [source as MemoryLike]
      await copyBetween(live, this.#address, from.address, this.byteLength, { wait, keep }, api)
    }
    return this
  }

  /** Like {@link copyFrom}, and blocks the thread. @throws SessionBusyError */
  copyFromSync(source: CopySource<D>): this {
    const api = 'SymmetricBuffer.copyFromSync'
    const { live } = this.#use(api)
    const from = this.#operand(source, api, 'source')
    if ('buffer' in from) uploadSync(live, this.#address, from, api)
    else copyBetweenSync(live, this.#address, from.address, this.byteLength, api)
    return this
  }

  /** Copies this PE's memory into host or device memory as long as this buffer; settles when the data is there. */
  async copyTo<T extends CopySource<D>>(target: T, wait?: WaitOptions): Promise<T> {
    const api = 'SymmetricBuffer.copyTo'
    const { live } = this.#use(api)
    const to = this.#operand(target, api, 'target')
    if ('buffer' in to) await download(live, this.#address, to, wait, api)
    else {
      requireWritable(to, api)
      const keep = [target as MemoryLike]
      await copyBetween(live, to.address, this.#address, this.byteLength, { wait, keep }, api)
    }
    return target
  }

  /** Like {@link copyTo}, and blocks the thread. @throws SessionBusyError */
  copyToSync<T extends CopySource<D>>(target: T): T {
    const api = 'SymmetricBuffer.copyToSync'
    const { live } = this.#use(api)
    const to = this.#operand(target, api, 'target')
    if ('buffer' in to) downloadSync(live, this.#address, to, api)
    else {
      requireWritable(to, api)
      copyBetweenSync(live, to.address, this.#address, this.byteLength, api)
    }
    return target
  }

  /** The elements of this PE in a fresh typed array. */
  toArray(wait?: WaitOptions): Promise<TypedArrayOf<D>> {
    return this.copyTo(this.#freshArray(), wait)
  }

  /** Like {@link toArray}, and blocks the thread. @throws SessionBusyError */
  toArraySync(): TypedArrayOf<D> {
    return this.copyToSync(this.#freshArray())
  }

  /** Writes one value to every element of this PE; settles when it is done. */
  async fill(value: HostValueOf<D>, wait?: WaitOptions): Promise<this> {
    const api = 'SymmetricBuffer.fill'
    const { live } = this.#use(api)
    await fill(live, this.#address, this.#filling(value), wait, api)
    return this
  }

  /** Like {@link fill}, and blocks the thread. @throws SessionBusyError */
  fillSync(value: HostValueOf<D>): this {
    const api = 'SymmetricBuffer.fillSync'
    const { live } = this.#use(api)
    fillSync(live, this.#address, this.#filling(value), api)
    return this
  }

  /**
   * The memory of another PE where this process can address it directly (`nvshmem_ptr`); undefined where it cannot, as
   * with a PE on another machine. For this process's own PE it is the same memory.
   *
   * @throws RangeError for a PE that is not there.
   */
  async peer(pe: number): Promise<PeerMemory<D> | undefined> {
    const api = 'SymmetricBuffer.peer'
    const { live } = this.#use(api)
    requirePe(pe, live.peCount, api)
    const address = await live.queue.ask(api, () => nvshmem_ptr(this.#address, pe))
    if (typeof address !== 'bigint' || address === 0n) return undefined
    return new PeerMemory(this.#allocation, pe, address, this.dtype, this.length)
  }

  /**
   * The address through which kernels store to the memory of all PEs of a team at once, over NVLink SHARP
   * (`nvshmemx_mc_ptr`); undefined where there is no multicast.
   */
  async multicastAddress(team: SessionTeam): Promise<bigint | undefined> {
    const api = 'SymmetricBuffer.multicastAddress'
    const { live } = this.#use(api)
    if (typeof (team as Partial<SessionTeam> | null | undefined)?._handleIn !== 'function') {
      throw new TypeError(`${api}: team must be a Team, got ${describeValue(team)}`)
    }
    const handle = team._handleIn(live, api)
    const address = await live.queue.ask(api, () => nvshmemx_mc_ptr(handle, this.#address))
    return typeof address === 'bigint' && address !== 0n ? address : undefined
  }

  /**
   * Another buffer with this one's elements at its start, and `length` of them; this one is disposed of. All PEs call it
   * with the same length. There is no `nvshmem_realloc` in the library: this allocates, copies and frees.
   */
  async resize(length: number, options: HeapOptions = {}): Promise<SymmetricBuffer<D>> {
    const api = 'SymmetricBuffer.resize'
    const { live } = this.#use(api)
    if (this.#offset !== 0 || this.byteLength !== this.#allocation.byteLength) {
      throw new TypeError(`${api}: a view cannot be resized, only the whole buffer`)
    }
    const { bytes } = dtypeInfo(this.dtype)
    const elements = requireCount(length, 'length', 1, api)
    const byteLength = requireCount(elements * bytes, 'length in bytes', 1, api)
    const allocation = await allocate(live, byteLength, options, api)
    const keep = Math.min(byteLength, this.byteLength)
    await copyBetween(live, allocation.address, this.#address, keep, { wait: options }, api)
    await this.#allocation.free(options)
    return new SymmetricBuffer(allocation, 0, this.dtype, elements)
  }

  /**
   * Gives the memory back (`nvshmem_free`): every PE has to, and the promise settles when all have. The buffer and its
   * views are of no use from the call on. Idempotent; on a view it throws.
   *
   * When a PE does not call it, the others wait inside of NVSHMEM: with a timeout or signal the promise rejects, and the
   * session is stuck (see {@link SessionStuckError}) until the missing PE calls it too.
   */
  dispose(wait?: WaitOptions): Promise<void> {
    if (this.#offset !== 0 || this.byteLength !== this.#allocation.byteLength) {
      return Promise.reject(
        new TypeError('SymmetricBuffer.dispose: a view is not freed, the buffer it is a part of is'),
      )
    }
    return this.#allocation.free(wait)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  get [memoryProtocol](): MemoryRange {
    return this._rangeFor()
  }

  get [Symbol.toStringTag](): string {
    return 'SymmetricBuffer'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const { pe } = this.#allocation.live
    return `SymmetricBuffer<${this.dtype}>(${this.length}) of PE ${pe}${this.disposed ? ', disposed' : ''}`
  }

  #use(api: string): Allocation {
    this.#allocation.requireUsable(api)
    return this.#allocation
  }

  #filling(value: HostValueOf<D>): Filling {
    return { dtype: this.dtype, value: value as HostValueOf<DType>, length: this.length }
  }

  #freshArray(): TypedArrayOf<D> {
    const { typedArray, arrayEntries } = dtypeInfo(this.dtype)
    return new typedArray(this.length * arrayEntries) as TypedArrayOf<D>
  }

  /** Host elements or a memory range, as long as this buffer. */
  #operand(operand: unknown, api: string, parameter: string): StorageArray | MemoryRange {
    if (!isMemoryLike(operand)) {
      const array = requireArrayFor(operand, this.dtype, api, parameter)
      this.#requireLength(array.byteLength, api, parameter)
      return array
    }
    const range = named(api, parameter, () => toMemoryRange(operand))
    if (range.dtype !== undefined && range.dtype !== this.dtype) {
      throw new TypeError(`${api}: ${parameter} has elements of ${range.dtype}, the buffer of ${this.dtype}`)
    }
    this.#requireLength(range.byteLength, api, parameter)
    return range
  }

  #requireLength(bytes: number, api: string, parameter: string): void {
    if (bytes === this.byteLength) return
    throw new RangeError(
      `${api}: ${parameter} has ${bytes} bytes, the buffer ${this.byteLength}; use slice() for parts`,
    )
  }
}

function requireWritable(range: MemoryRange, api: string): void {
  if (range.readOnly === true) throw new TypeError(`${api}: target is read-only memory`)
}

/** Allocates elements on the symmetric heap of all PEs. */
export async function allocateElements<D extends DType>(
  live: Allocation['live'],
  dtype: D,
  length: number,
  options: HeapOptions,
): Promise<SymmetricBuffer<D>> {
  const api = 'Session.allocate'
  const { bytes } = named(api, 'dtype', () => dtypeInfo(dtype))
  const elements = requireCount(length, 'length', 1, api)
  const byteLength = elements * bytes
  if (!Number.isSafeInteger(byteLength)) throw new RangeError(`${api}: ${elements} elements of ${dtype} are too many`)
  const allocation = await allocate(live, byteLength, options, api)
  if (allocation.address % BigInt(dtypeInfo(dtype).alignment) === 0n) {
    return SymmetricBuffer._of(allocation, dtype, elements)
  }
  throw nvshmemError(7, 'nvshmem_malloc', `the memory is not aligned for ${dtype}`)
}
