import { bytesOfElement, nameOfType, requireElementType, structBytes } from '@shoal/driver/basics'
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
  upload,
  uploadSync,
} from './hostCopies.js'
import { requireOperand, requireWritable } from './operand.js'
import { PeerMemory } from './peerMemory.js'

/** One element: a number, a bigint, a boolean, or the value of a struct, an array or a tuple. */
export type ElementValueOf<E extends ElementType> = E extends DType ? HostValueOf<E> : CompoundInputOf<E>

/** Source of a copy to symmetric memory: an array, a list of compound values, or memory CUDA can reach. */
export type CopySource<E extends ElementType> = ElementInputOf<E> | CopyTarget<E>

/** Target of a copy from symmetric memory: a typed array (bytes for structs), or memory CUDA can reach. */
export type CopyTarget<E extends ElementType> = (E extends DType ? TypedArrayOf<E> : Uint8Array) | MemoryLike

/**
 * Typed memory at the same place of every PE's symmetric heap, or a view of it.
 *
 * Transfers, atomics and collectives use it to address the memory of any PE. On its own device, kernels, copies of
 * `@shoal/driver` and NCCL use it like other device memory (through the memory protocol).
 *
 * All PEs allocate it together and free it together: `dispose()` waits for the other PEs. The garbage collector only
 * reports a buffer that was not disposed of.
 *
 * Copies between the host and this PE's memory run on the session's thread, in turn with its other calls. They wait for
 * the memory's producer stream, but not for other work on streams: synchronize first.
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

  /** @internal A buffer of a whole allocation. */
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

  /** @internal The address, without a check that the memory still exists. */
  get _address(): bigint {
    return this.#address
  }

  /** @internal The protocol answer, for an operation that the error names. @throws DisposedError */
  _rangeFor(operation?: string): MemoryRange {
    this.#allocation.requireUsable(operation)
    const { deviceOrdinal, context } = this.#allocation.live
    const dtype: ElementType = this.dtype
    // A frozen range cannot change, so a consumer that gets the same object again can skip its checks.
    this.#range ??= Object.freeze({
      version: 0,
      address: this.#address,
      byteLength: this.byteLength,
      deviceOrdinal,
      context,
      // The protocol has no structs, so other consumers see bytes.
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

  /** Whether `dispose()` was called, for this buffer or for the buffer of this view. */
  get disposed(): boolean {
    return this.#allocation.freed
  }

  /**
   * Returns a view of the elements from `start` up to, but not including, `end`.
   *
   * Negative numbers count from the end.
   *
   * @throws TypeError for a value that is not an integer, RangeError if the range exceeds the buffer, DisposedError.
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

  /** Like {@link slice}, under the name of typed arrays. */
  subarray(start = 0, end: number = this.length): SymmetricBuffer<E> {
    return this.#slice(start, end, 'SymmetricBuffer.subarray')
  }

  /**
   * Returns the same bytes as elements of another type, without a copy.
   *
   * @throws TypeError for an unknown dtype, RangeError if the bytes are not a whole number of aligned elements,
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
   * Copies `source` to this PE's memory (`cuMemcpyHtoD`, `cuMemcpy`).
   *
   * `source` must have the length of this buffer, and must not change before the promise resolves. The promise returns
   * the buffer when the copy has completed. Later calls run after the copy.
   *
   * @throws TypeError for another dtype, RangeError for another length, DisposedError, StatusError; TimeoutError,
   * AbortedError.
   */
  async copyFrom(source: CopySource<E>, wait?: WaitOptions): Promise<this> {
    const api = 'SymmetricBuffer.copyFrom'
    const { live } = this.#use(api)
    const from = requireOperand(this, structBytes(source, this.dtype, api, 'source'), api, 'source')
    if ('buffer' in from) await upload(live, this.#address, from, wait, api)
    else {
      await copyBetween(live, this.#address, from.address, this.byteLength, { wait, operands: [source] }, api)
    }
    return this
  }

  /** Like {@link copyFrom}, but blocks the thread. @throws BusyError */
  copyFromSync(source: CopySource<E>): this {
    const api = 'SymmetricBuffer.copyFromSync'
    const { live } = this.#use(api)
    const from = requireOperand(this, structBytes(source, this.dtype, api, 'source'), api, 'source')
    if ('buffer' in from) uploadSync(live, this.#address, from, api)
    else copyBetweenSync(live, this.#address, from.address, this.byteLength, api)
    return this
  }

  /**
   * Copies this PE's memory to a typed array or memory of the same length (`cuMemcpyDtoH`, `cuMemcpy`).
   *
   * The promise returns `target` when the copy has completed. Throws as {@link copyFrom}, and TypeError for read-only
   * memory.
   */
  copyTo<T extends CopyTarget<E>>(target: T, wait?: WaitOptions): Promise<T> {
    return this.#copyTo(target, wait, 'SymmetricBuffer.copyTo')
  }

  async #copyTo<T extends CopyTarget<E>>(target: T, wait: WaitOptions | undefined, api: string): Promise<T> {
    const { live } = this.#use(api)
    const to = requireOperand(this, target, api, 'target')
    if ('buffer' in to) await download(live, this.#address, to, wait, api)
    else {
      requireWritable(to, api)
      await copyBetween(live, to.address, this.#address, this.byteLength, { wait, operands: [target] }, api)
    }
    return target
  }

  /** Like {@link copyTo}, but blocks the thread. @throws BusyError */
  copyToSync<T extends CopyTarget<E>>(target: T): T {
    return this.#copyToSync(target, 'SymmetricBuffer.copyToSync')
  }

  #copyToSync<T extends CopyTarget<E>>(target: T, api: string): T {
    const { live } = this.#use(api)
    const to = requireOperand(this, target, api, 'target')
    if ('buffer' in to) downloadSync(live, this.#address, to, api)
    else {
      requireWritable(to, api)
      copyBetweenSync(live, to.address, this.#address, this.byteLength, api)
    }
    return target
  }

  /**
   * Copies this PE's elements to a new typed array or list of compound values.
   *
   * Throws as {@link copyTo}.
   */
  async toArray(wait?: WaitOptions): Promise<ElementArrayOf<E>> {
    return this.#elementsFrom(await this.#copyTo(this.#newArray(), wait, 'SymmetricBuffer.toArray'))
  }

  /** Like {@link toArray}, but blocks the thread. @throws BusyError */
  toArraySync(): ElementArrayOf<E> {
    return this.#elementsFrom(this.#copyToSync(this.#newArray(), 'SymmetricBuffer.toArraySync'))
  }

  /**
   * Writes one value to every element of this PE (`cuMemsetD8` … `cuMemsetD32`).
   *
   * The promise returns the buffer when the fill has completed.
   *
   * @throws TypeError, RangeError for a value that is not an element of the dtype; DisposedError, StatusError,
   * TimeoutError, AbortedError.
   */
  async fill(value: ElementValueOf<E>, wait?: WaitOptions): Promise<this> {
    const api = 'SymmetricBuffer.fill'
    const { live } = this.#use(api)
    await fill(live, this.#address, this.#filling(value), wait, api)
    return this
  }

  /** Like {@link fill}, but blocks the thread. @throws BusyError */
  fillSync(value: ElementValueOf<E>): this {
    const api = 'SymmetricBuffer.fillSync'
    const { live } = this.#use(api)
    fillSync(live, this.#address, this.#filling(value), api)
    return this
  }

  /**
   * Returns the memory of another PE, if this process can address it (`nvshmem_ptr`).
   *
   * Returns undefined otherwise, such as for a PE on another machine. For this process's own PE, returns the same
   * memory.
   *
   * @throws TypeError, RangeError for a number that is not a PE of the session, DisposedError.
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
   * Returns the multicast address of all PEs of a team (`nvshmemx_mc_ptr`).
   *
   * One store of a kernel to this address reaches all PEs, over NVLink SHARP.
   *
   * Undefined without multicast support.
   *
   * @throws TypeError for a value that is not a team of this session, DisposedError.
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
   * Replaces this buffer with one of `length` elements that begins with the same elements.
   *
   * Disposes of this buffer. All PEs call it with the same length. The library has no `nvshmem_realloc`, so this
   * allocates, copies and frees.
   *
   * @throws as `Session.allocate`; TypeError for a view.
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
   * Frees the memory together with all other PEs (`nvshmem_free`). Idempotent.
   *
   * The promise settles when all PEs have called it. The buffer and its views cannot be used after the call.
   *
   * @throws TypeError for a view; SessionStuckError, TimeoutError, AbortedError.
   *
   * If a PE does not call it, the other PEs wait inside NVSHMEM. A timeout or signal rejects the promise, but the
   * session is stuck (see {@link SessionStuckError}) until the missing PE calls it too.
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
}

/** Maximum number of elements whose size in bytes is still exact. */
function mostElements(bytes: number): number {
  return Math.floor(Number.MAX_SAFE_INTEGER / bytes)
}

/** Adds the alignment of a struct that needs more than NVSHMEM's 16 bytes. */
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
