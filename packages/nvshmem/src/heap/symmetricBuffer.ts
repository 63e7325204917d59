import { bytesOfElement, nameOfType, orderBehind, requireElementType, structBytes } from '@shoal/driver/basics'
import { nvshmem_ptr, nvshmemx_mc_ptr } from '@shoal/nvshmem-sys'
import {
  type CompoundInputOf,
  type DType,
  dtypeInfo,
  type ElementArrayOf,
  type ElementInputOf,
  type ElementType,
  type HostValueOf,
  inspectKey,
  inspectLine,
  isMemoryLike,
  loadedFrom,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  outOfRange,
  PublicObject,
  propertyOf,
  requireCount,
  requireInteger,
  requireMade,
  type TypedArrayOf,
  toMemoryRange,
  type WaitOptions,
  wrongType,
} from '@shoal/types'
import { nvshmemError } from '../errors.js'
import { freedInTurn, waitOf } from '../queue/callQueue.js'
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
  requireBytesFor,
  upload,
  uploadSync,
} from './hostCopies.js'
import { PeerMemory } from './peerMemory.js'

/** One element: a number, a bigint, a boolean, or the value of a struct, an array or a tuple. */
export type ElementValueOf<E extends ElementType> = E extends DType ? HostValueOf<E> : CompoundInputOf<E>

/**
 * What can be copied into symmetric memory: a typed array, a list of structs, arrays or tuples, or memory that CUDA
 * reaches.
 */
export type CopySource<E extends ElementType> = ElementInputOf<E> | CopyTarget<E>

/**
 * What symmetric memory can be copied into: a typed array, which holds bytes for structs, or memory that CUDA reaches.
 */
export type CopyTarget<E extends ElementType> = (E extends DType ? TypedArrayOf<E> : Uint8Array) | MemoryLike

/**
 * Typed memory that every PE has at the same place of its symmetric heap, or a view of a part of it. Transfers, atomics
 * and collectives name it to mean the memory of any PE; on its own device it is memory like any other, also for
 * kernels, for the copies of `@shoal/driver` and for NCCL (by the memory protocol).
 *
 * All PEs allocate it together and give it back together: `dispose()` waits for the others. The garbage collector only
 * reports a buffer that was forgotten.
 *
 * Copies between the host and this PE's memory run on the session's thread, in turn with its other calls. They wait for
 * the stream that memory names as its producer's, and know nothing of other work on streams: synchronize first.
 *
 * @example
 * ```ts
 * await using buffer = await session.allocate('f32', 1024) // on every PE
 * await buffer.copyFrom(new Float32Array(1024))
 * await session.put(buffer, buffer, { pe: 1 }) // this PE's elements into those of PE 1
 * await session.barrierAll()
 * const elements = await buffer.toArray()
 * ```
 */
export class SymmetricBuffer<E extends ElementType = ElementType> extends PublicObject implements MemoryLike {
  /** @internal */
  static get [loadedFrom](): string {
    return import.meta.url
  }
  /** Type of the elements. */
  readonly dtype: E
  /** Number of elements; 0 is allowed. */
  readonly length: number
  /** Size in bytes. */
  readonly byteLength: number
  readonly #allocation: Allocation
  readonly #offset: number
  readonly #address: bigint
  #range: MemoryRange | undefined

  private constructor(allocation: Allocation, offset: number, dtype: E, length: number) {
    requireMade(length, 'SymmetricBuffer', 'Session.allocate', 'number')
    super()
    this.#allocation = allocation
    this.#offset = offset
    this.#address = allocation.address + BigInt(offset)
    this.dtype = dtype
    this.length = length
    this.byteLength = length * bytesOfElement(dtype)
  }

  /** @internal */
  static _is(value: unknown): value is SymmetricBuffer {
    return typeof value === 'object' && value !== null && #allocation in value
  }

  /** @internal The whole of an allocation. */
  static _of<E extends ElementType>(allocation: Allocation, dtype: E, length: number): SymmetricBuffer<E> {
    return new SymmetricBuffer(allocation, 0, dtype, length)
  }

  /** @internal */
  get [freedInTurn](): true {
    return true
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
    const { deviceOrdinal, context } = this.#allocation.live
    const dtype: ElementType = this.dtype
    // Frozen: whoever checked it once may recognise it.
    this.#range ??= Object.freeze({
      version: 0,
      address: this.#address,
      byteLength: this.byteLength,
      deviceOrdinal,
      context,
      // The protocol knows no structs: those are bytes to others.
      ...(typeof dtype === 'string' ? { dtype, length: this.length } : {}),
    })
    return this.#range
  }

  /** Address of the first element in this PE's memory. @throws DisposedError */
  get address(): bigint {
    this.#allocation.requireUsable()
    return this.#address
  }

  /** Ordinal of the device that holds this PE's memory. */
  get deviceOrdinal(): number {
    return this.#allocation.live.deviceOrdinal
  }

  /** Whether `dispose()` was called, for this buffer or for the one it is a view of. */
  get disposed(): boolean {
    return this.#allocation.freed
  }

  /**
   * The elements from `start` up to, not including, `end`, as a view without a copy; negative numbers count from the
   * end.
   *
   * @throws TypeError for what is no integer, RangeError when the range does not lie within the buffer, DisposedError.
   */
  slice(start = 0, end: number = this.length): SymmetricBuffer<E> {
    return this.#slice(start, end, 'SymmetricBuffer.slice')
  }

  #slice(start: number, end: number, api: string): SymmetricBuffer<E> {
    this.#allocation.requireUsable(api)
    const { length } = this
    const from = requireInteger(start, api, 'start', -length, length)
    const first = from < 0 ? from + length : from
    const to = requireInteger(end, api, 'end', -length, length)
    const last = to < 0 ? to + length : to
    if (last < first) throw outOfRange(api, 'end', `at least start, which is element ${first}`, end)
    const offset = this.#offset + first * bytesOfElement(this.dtype)
    return new SymmetricBuffer(this.#allocation, offset, this.dtype, last - first)
  }

  /** The same as {@link slice}: the name typed arrays have for a view. */
  subarray(start = 0, end: number = this.length): SymmetricBuffer<E> {
    return this.#slice(start, end, 'SymmetricBuffer.subarray')
  }

  /**
   * The same bytes as elements of another type, without a copy.
   *
   * @throws TypeError for an unknown dtype, RangeError when the bytes are no whole number of aligned elements,
   * DisposedError.
   */
  reinterpret<F extends ElementType>(dtype: F): SymmetricBuffer<F> {
    const api = 'SymmetricBuffer.reinterpret'
    this.#allocation.requireUsable(api)
    const { bytes, alignment } = requireElementType(dtype, api, 'dtype')
    if (this.byteLength % bytes !== 0 || this.#address % BigInt(alignment) !== 0n) {
      throw new RangeError(
        `${api}: dtype must be one that ${this.byteLength} bytes at 0x${this.#address.toString(16)} are whole, aligned ` +
          `elements of, not '${nameOfType(dtype)}'`,
      )
    }
    return new SymmetricBuffer(this.#allocation, this.#offset, dtype, this.byteLength / bytes)
  }

  /**
   * Copies `source`, which must be as long as this buffer, into this PE's memory (`cuMemcpyHtoD`, `cuMemcpy`). The
   * promise gives the buffer when the data is there; until then the source must stay as it is. Calls made meanwhile
   * come after it.
   *
   * @throws TypeError for another dtype, RangeError for another length, DisposedError, StatusError; TimeoutError,
   * AbortedError.
   */
  async copyFrom(source: CopySource<E>, wait?: WaitOptions): Promise<this> {
    const api = 'SymmetricBuffer.copyFrom'
    const { live } = this.#use(api)
    const from = this.#operand(structBytes(source, this.dtype, api, 'source'), api, 'source')
    if ('buffer' in from) await upload(live, this.#address, from, wait, api)
    else {
      await copyBetween(live, this.#address, from.address, this.byteLength, { wait, operands: [source] }, api)
    }
    return this
  }

  /** Like {@link copyFrom}, and blocks the thread. @throws BusyError */
  copyFromSync(source: CopySource<E>): this {
    const api = 'SymmetricBuffer.copyFromSync'
    const { live } = this.#use(api)
    const from = this.#operand(structBytes(source, this.dtype, api, 'source'), api, 'source')
    if ('buffer' in from) uploadSync(live, this.#address, from, api)
    else copyBetweenSync(live, this.#address, from.address, this.byteLength, api)
    return this
  }

  /**
   * Copies this PE's memory into a typed array or memory as long as this buffer (`cuMemcpyDtoH`, `cuMemcpy`). The
   * promise gives `target` when the data is there. Throws what {@link copyFrom} throws, and TypeError for memory that
   * is read-only.
   */
  copyTo<T extends CopyTarget<E>>(target: T, wait?: WaitOptions): Promise<T> {
    return this.#copyTo(target, wait, 'SymmetricBuffer.copyTo')
  }

  async #copyTo<T extends CopyTarget<E>>(target: T, wait: WaitOptions | undefined, api: string): Promise<T> {
    const { live } = this.#use(api)
    const to = this.#operand(target, api, 'target')
    if ('buffer' in to) await download(live, this.#address, to, wait, api)
    else {
      requireWritable(to, api)
      await copyBetween(live, to.address, this.#address, this.byteLength, { wait, operands: [target] }, api)
    }
    return target
  }

  /** Like {@link copyTo}, and blocks the thread. @throws BusyError */
  copyToSync<T extends CopyTarget<E>>(target: T): T {
    return this.#copyToSync(target, 'SymmetricBuffer.copyToSync')
  }

  #copyToSync<T extends CopyTarget<E>>(target: T, api: string): T {
    const { live } = this.#use(api)
    const to = this.#operand(target, api, 'target')
    if ('buffer' in to) downloadSync(live, this.#address, to, api)
    else {
      requireWritable(to, api)
      copyBetweenSync(live, to.address, this.#address, this.byteLength, api)
    }
    return target
  }

  /**
   * Copies the elements of this PE into a typed array of their own, or a list of structs, arrays or tuples. Throws what
   * {@link copyTo} throws.
   */
  async toArray(wait?: WaitOptions): Promise<ElementArrayOf<E>> {
    return this.#elementsFrom(await this.#copyTo(this.#newArray(), wait, 'SymmetricBuffer.toArray'))
  }

  /** Like {@link toArray}, and blocks the thread. @throws BusyError */
  toArraySync(): ElementArrayOf<E> {
    return this.#elementsFrom(this.#copyToSync(this.#newArray(), 'SymmetricBuffer.toArraySync'))
  }

  /**
   * Writes one value to every element of this PE (`cuMemsetD8` … `cuMemsetD32`). The promise gives the buffer when it
   * is done.
   *
   * @throws TypeError, RangeError for what is no element of the dtype; DisposedError, StatusError, TimeoutError,
   * AbortedError.
   */
  async fill(value: ElementValueOf<E>, wait?: WaitOptions): Promise<this> {
    const api = 'SymmetricBuffer.fill'
    const { live } = this.#use(api)
    await fill(live, this.#address, this.#filling(value), wait, api)
    return this
  }

  /** Like {@link fill}, and blocks the thread. @throws BusyError */
  fillSync(value: ElementValueOf<E>): this {
    const api = 'SymmetricBuffer.fillSync'
    const { live } = this.#use(api)
    fillSync(live, this.#address, this.#filling(value), api)
    return this
  }

  /**
   * The memory of another PE where this process can address it directly (`nvshmem_ptr`); undefined where it cannot, as
   * with a PE on another machine. For this process's own PE it is the same memory.
   *
   * @throws TypeError, RangeError for what is no PE of the session, DisposedError.
   */
  async peer(pe: number): Promise<PeerMemory<E> | undefined> {
    const api = 'SymmetricBuffer.peer'
    const { live } = this.#use(api)
    requireInteger(pe, api, 'pe', 0, live.peCount - 1)
    const address = await live.queue.ask(api, () => nvshmem_ptr(this.#address, pe))
    if (typeof address !== 'bigint' || address === 0n) return undefined
    return new PeerMemory(this.#allocation, pe, address, this.dtype, this.length)
  }

  /**
   * The address through which kernels store to the memory of all PEs of a team at once, over NVLink SHARP
   * (`nvshmemx_mc_ptr`); undefined where there is no multicast.
   *
   * @throws TypeError for what is no team of this session, DisposedError.
   */
  async multicastAddress(team: SessionTeam): Promise<bigint | undefined> {
    const api = 'SymmetricBuffer.multicastAddress'
    const { live } = this.#use(api)
    if (typeof propertyOf(team, '_handleIn') !== 'function') {
      throw wrongType(api, 'team', 'a Team', team)
    }
    const handle = team._handleIn(live, api)
    const address = await live.queue.ask(api, () => nvshmemx_mc_ptr(handle, this.#address))
    return typeof address === 'bigint' && address !== 0n ? address : undefined
  }

  /**
   * Gives a new buffer of `length` elements that begins with the elements of this one, which is disposed of. All PEs
   * call it with the same length. The library has no `nvshmem_realloc`: this allocates, copies and frees.
   *
   * @throws what `Session.allocate` throws; TypeError for a view.
   */
  async resize(length: number, options: HeapOptions = {}): Promise<SymmetricBuffer<E>> {
    const api = 'SymmetricBuffer.resize'
    const { live } = this.#use(api)
    if (this.#offset !== 0 || this.byteLength !== this.#allocation.byteLength) {
      throw new TypeError(`${api}: a view cannot be resized, only the whole buffer`)
    }
    const bytes = bytesOfElement(this.dtype)
    const elements = requireCount(length, api, 'length', 0, mostElements(bytes))
    const allocation = await allocate(live, elements * bytes, options, api)
    const wait = waitOf(options)
    await copyBetween(
      live,
      allocation.address,
      this.#address,
      Math.min(elements * bytes, this.byteLength),
      { wait },
      api,
    )
    await this.#allocation.free(wait)
    return new SymmetricBuffer(allocation, 0, this.dtype, elements)
  }

  /**
   * Gives the memory back (`nvshmem_free`): every PE has to, and the promise settles when all have. The buffer and its
   * views cannot be used from the call on. Again does nothing.
   *
   * @throws TypeError for a view; SessionStuckError, TimeoutError, AbortedError.
   *
   * When a PE does not call it, the others wait inside of NVSHMEM: with a timeout or signal the promise rejects, and
   * the session is stuck (see {@link SessionStuckError}) until the missing PE calls it too.
   */
  dispose(wait?: WaitOptions): Promise<void> {
    if (this.#offset !== 0 || this.byteLength !== this.#allocation.byteLength) {
      return Promise.reject(
        new TypeError('SymmetricBuffer.dispose: a view owns no memory; dispose of the buffer it is a part of'),
      )
    }
    return this.#allocation.free(wait)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  /** The memory protocol: this PE's memory. @throws DisposedError */
  get [memoryProtocol](): MemoryRange {
    return this._rangeFor()
  }

  get [Symbol.toStringTag](): string {
    return 'SymmetricBuffer'
  }

  /** @internal */
  override [inspectKey](): string {
    const { dtype, length, deviceOrdinal } = this
    const { pe } = this.#allocation.live
    return inspectLine('SymmetricBuffer', {
      dtype: nameOfType(dtype),
      length,
      pe,
      deviceOrdinal,
      disposed: this.disposed || undefined,
    })
  }

  #use(api: string): Allocation {
    this.#allocation.requireUsable(api)
    return this.#allocation
  }

  #filling(value: ElementValueOf<E>): Filling {
    return { dtype: this.dtype, value, length: this.length }
  }

  #newArray(): CopyTarget<E> & ArrayBufferView {
    const dtype: ElementType = this.dtype
    if (typeof dtype !== 'string') return new Uint8Array(this.byteLength) as never
    const { typedArray, arrayEntries } = dtypeInfo(dtype)
    return new typedArray(this.length * arrayEntries) as never
  }

  #elementsFrom(array: ArrayBufferView): ElementArrayOf<E> {
    const dtype: ElementType = this.dtype
    return (typeof dtype === 'string' ? array : dtype.decode(array)) as ElementArrayOf<E>
  }

  /** Host elements or a memory range, as long as this buffer. */
  #operand(operand: unknown, api: string, parameter: string): Uint8Array | MemoryRange {
    if (!isMemoryLike(operand)) {
      const array = requireBytesFor(operand, this.dtype, api, parameter)
      this.#requireLength(array.byteLength, api, parameter)
      return array
    }
    const range = toMemoryRange(operand, api, parameter)
    if (range.dtype !== undefined && range.dtype !== this.dtype) {
      throw new TypeError(
        `${api}: ${parameter} has elements of ${range.dtype}, the buffer of ${nameOfType(this.dtype)}`,
      )
    }
    this.#requireLength(range.byteLength, api, parameter)
    // Copies are made on the default stream.
    orderBehind(0n, this.#allocation.live.context, range)
    return range
  }

  #requireLength(bytes: number, api: string, parameter: string): void {
    if (bytes === this.byteLength) return
    throw new RangeError(
      `${api}: ${parameter} has ${bytes} bytes, the buffer ${this.byteLength}; use slice() for parts`,
    )
  }
}

/** So many that their bytes are still counted exactly. */
function mostElements(bytes: number): number {
  return Math.floor(Number.MAX_SAFE_INTEGER / bytes)
}

function requireWritable(range: MemoryRange, api: string): void {
  if (range.readOnly === true) throw new TypeError(`${api}: target is read-only memory`)
}

/** NVSHMEM aligns to 16 bytes; a struct may ask for more. */
function aligned(options: HeapOptions, alignment: number): HeapOptions {
  const isEnough = alignment <= 16 || options === null || typeof options !== 'object' || options.zeroed === true
  return isEnough || options.alignment !== undefined ? options : { ...options, alignment }
}

/** Allocates elements on the symmetric heap of all PEs. */
export async function allocateElements<E extends ElementType>(
  live: Allocation['live'],
  dtype: E,
  length: number,
  options: HeapOptions,
): Promise<SymmetricBuffer<E>> {
  const api = 'Session.allocate'
  const { bytes, alignment } = requireElementType(dtype, api)
  const elements = requireCount(length, api, 'length', 0, mostElements(bytes))
  const allocation = await allocate(live, elements * bytes, aligned(options, alignment), api)
  if (allocation.address % BigInt(alignment) === 0n) {
    return SymmetricBuffer._of(allocation, dtype, elements)
  }
  throw nvshmemError(7, 'nvshmem_malloc', `the memory is not aligned for ${nameOfType(dtype)}`)
}
