import { cuMemGetInfo } from '@shoal/cuda-sys/driver'
import { nvshmemx_status } from '@shoal/nvshmem-sys'
import { checkCuda, nvshmemError } from '../errors.js'
import type { CallQueue } from '../session/callQueue.js'

/** NVSHMEM hands out multiples of this. */
const unit = 512

const rounded = (bytes: number): number => Math.ceil(bytes / unit) * unit

/**
 * What the symmetric heap holds of this PE's device. NVSHMEM ends the process when the device has no memory for the heap
 * to grow, so whether it will is asked before.
 */
export class HeapRoom {
  readonly #queue: CallQueue
  readonly #device: number
  /** Bytes that are allocated, or will be when their turn comes. */
  #live = 0
  /** The most that ever were: the heap keeps what it has grown by. */
  #peak = 0
  /** Bytes by which the calls that are under way may make the heap grow. */
  #growing = 0

  /** @param queue makes the driver's calls in the context of `device`. */
  constructor(queue: CallQueue, device: number) {
    this.#queue = queue
    this.#device = device
  }

  /**
   * Counts memory that is about to be allocated; what is returned is called when that has ended.
   *
   * @throws StatusError (NVSHMEMX_ERROR_OUT_OF_MEMORY) when the device has no room for it.
   */
  take(byteLength: number, api: string): (isAllocated: boolean) => void {
    const bytes = rounded(byteLength)
    const growth = Math.max(0, this.#live + bytes - this.#peak)
    if (growth > 0) this.#requireRoom(bytes, api)
    this.#live += bytes
    this.#peak += growth
    this.#growing += growth
    return (isAllocated) => {
      this.#growing -= growth
      if (isAllocated) return
      this.#live -= bytes
      this.#peak -= growth
    }
  }

  /** Memory of this size is given back, in turn with the session's other calls. */
  give(byteLength: number): void {
    this.#live -= rounded(byteLength)
  }

  #requireRoom(bytes: number, api: string): void {
    const [free, total] = [new BigUint64Array(1), new BigUint64Array(1)]
    const status = this.#queue.inContext(() => cuMemGetInfo(free, total))
    checkCuda(status, 'cuMemGetInfo')
    const kept = this.#peak - this.#live
    const room = Number(free[0]) - this.#growing + kept
    if (bytes <= room) return
    throw nvshmemError(
      nvshmemx_status.NVSHMEMX_ERROR_OUT_OF_MEMORY,
      api,
      `${bytes} bytes of symmetric memory are wanted, and device ${this.#device} has room for ${Math.max(0, room)}: ` +
        `${free[0]} are free${kept === 0 ? '' : `, ${kept} the heap has kept`}` +
        `${this.#growing === 0 ? '' : `, ${this.#growing} go to allocations under way`}`,
    )
  }
}
