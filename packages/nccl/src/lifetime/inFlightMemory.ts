import type { LiveCommunicator } from './live.js'
import { isFatal } from './watchdog.js'

/**
 * Memory that a call of NCCL on another thread reads and writes. It is freed once the caller and NCCL are both done
 * with it: a caller that waits no more leaves NCCL behind, which goes on until its call returns or, where the
 * communicator does not block, until the communicator has been freed.
 */
export class InFlightMemory {
  readonly #live: LiveCommunicator
  readonly #free: () => void
  #users = 1

  constructor(live: LiveCommunicator, free: () => void) {
    this.#live = live
    this.#free = free
  }

  /** Makes the call, and waits for all that NCCL does for it. */
  async during<T>(call: () => Promise<T>): Promise<T> {
    this.#users += 1
    try {
      const result = await call()
      this.release()
      return result
    } catch (error) {
      // After an error that ends the communicator NCCL may still be at work in the background.
      if (this.#live.ended === undefined && !isFatal(error)) this.release()
      else this.#live.whenFreed(() => this.release())
      throw error
    }
  }

  /** The caller is done with it. */
  release(): void {
    this.#users -= 1
    if (this.#users === 0) this.#free()
  }
}
