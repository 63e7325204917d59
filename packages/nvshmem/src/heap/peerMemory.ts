import { type DType, dtypeInfo, type MemoryLike, type MemoryRange, memoryProtocol } from '@shoal/types'
import type { Allocation } from './allocation.js'

/**
 * The symmetric memory of another PE, as this process can address it: loads and stores of kernels and copies reach it
 * directly, without a call of NVSHMEM. It lives as long as the buffer it is a view of, and is nobody's to free.
 */
export class PeerMemory<D extends DType = DType> implements MemoryLike {
  /** The PE that owns the memory. */
  readonly pe: number
  /** Type of the elements. */
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  readonly #allocation: Allocation
  readonly #address: bigint

  /** @internal */
  constructor(allocation: Allocation, pe: number, address: bigint, dtype: D, length: number) {
    this.#allocation = allocation
    this.#address = address
    this.pe = pe
    this.dtype = dtype
    this.length = length
  }

  /** Size in bytes. */
  get byteLength(): number {
    return this.length * dtypeInfo(this.dtype).bytes
  }

  /** Where it is in this process's address space. @throws DisposedError */
  get address(): bigint {
    this.#allocation.requireUsable('address of a peer')
    return this.#address
  }

  /** As memory that work on this session's device can use. */
  get [memoryProtocol](): MemoryRange {
    const { live } = this.#allocation
    return {
      version: 0,
      address: this.address,
      byteLength: this.byteLength,
      deviceOrdinal: live.device,
      context: live.context,
      dtype: this.dtype,
      length: this.length,
    }
  }

  get [Symbol.toStringTag](): string {
    return 'PeerMemory'
  }
}
