import type { LiveCommunicator } from './live.js'
import { isFatal } from './watchdog.js'

/**
 * Memory that an NCCL call on another thread reads and writes.
 *
 * It is freed when both the caller and NCCL have finished. After the caller cancels its wait, NCCL continues: until its
 * call returns, or for a nonblocking communicator until the communicator was freed.
 */
export class InFlightMemory {
  readonly #live: LiveCommunicator
  readonly #free: () => void
  #users = 1

  constructor(live: LiveCommunicator, free: () => void) {
    this.#live = live
    this.#free = free
  }

  /** Makes the call and waits for all of its work in NCCL. */
  async during<T>(call: () => Promise<T>): Promise<T> {
    this.#users += 1
    try {
      const result = await call()
      this.release()
      return result
    } catch (error) {
      // After an error that ends the communicator, NCCL may still work in the background.
      if (this.#live.ended === undefined && !isFatal(error)) this.release()
      else this.#live.whenFreed(() => this.release())
      throw error
    }
  }

  /** Releases the caller's use. */
  release(): void {
    this.#users -= 1
    if (this.#users === 0) this.#free()
  }
}
