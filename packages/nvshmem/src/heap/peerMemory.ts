import { bytesOfElement, nameOfType } from '@shoal/driver/basics'
import {
  type ElementType,
  inspectKey,
  inspectLine,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  PublicObject,
  requireMade,
} from '@shoal/types'
import type { Allocation } from './allocation.js'

/**
 * The symmetric memory of another PE, mapped in this process.
 *
 * Kernels and copies access it directly, without a call of NVSHMEM. Peer memory is a view: it is valid as long as its
 * buffer, and has no `dispose()`.
 *
 * @example
 * ```ts
 * const peer = await buffer.peer(1) // undefined where PE 1 is on another machine
 * if (peer !== undefined) ownMemory.copyFrom(peer, { stream })
 * ```
 */
export class PeerMemory<E extends ElementType = ElementType> extends PublicObject implements MemoryLike {
  /** The PE that owns the memory. */
  readonly pe: number
  /** Type of the elements. */
  readonly dtype: E
  /** Number of elements. */
  readonly length: number
  readonly #allocation: Allocation
  readonly #address: bigint

  /** @internal */
  constructor(allocation: Allocation, pe: number, address: bigint, dtype: E, length: number) {
    requireMade(address, 'PeerMemory', 'SymmetricBuffer.peer')
    super()
    this.#allocation = allocation
    this.#address = address
    this.pe = pe
    this.dtype = dtype
    this.length = length
  }

  /** Size in bytes. */
  get byteLength(): number {
    return this.length * bytesOfElement(this.dtype)
  }

  /** Address of the first byte in this process. @throws DisposedError after `dispose()` of the buffer. */
  get address(): bigint {
    this.#allocation.requireUsable('address of a peer')
    return this.#address
  }

  /** The memory protocol: memory that work on this session's device can use. @throws DisposedError */
  get [memoryProtocol](): MemoryRange {
    const { live } = this.#allocation
    const dtype: ElementType = this.dtype
    return {
      version: 0,
      address: this.address,
      byteLength: this.byteLength,
      deviceOrdinal: live.deviceOrdinal,
      context: live.context,
      ...(typeof dtype === 'string' ? { dtype, length: this.length } : {}),
    }
  }

  get [Symbol.toStringTag](): string {
    return 'PeerMemory'
  }

  /** @internal */
  override [inspectKey](): string {
    const { pe, dtype, length } = this
    return inspectLine('PeerMemory', {
      pe,
      dtype: nameOfType(dtype),
      length,
      disposed: this.#allocation.freed || undefined,
    })
  }
}
