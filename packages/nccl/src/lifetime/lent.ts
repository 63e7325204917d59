import type { LiveCommunicator } from './live.js'
import { isFatal } from './watchdog.js'

/**
 * Memory that a call of NCCL on another thread reads and writes. It is given back once caller and NCCL are both done with it: a
 * caller that waits no more leaves NCCL behind, which goes on until its call returns or, where the communicator does not block,
 * until the communicator has been freed.
 */
export class LentMemory {
  readonly #live: LiveCommunicator
  readonly #giveBack: () => void
  #holders = 1

  constructor(live: LiveCommunicator, giveBack: () => void) {
    this.#live = live
    this.#giveBack = giveBack
  }

  /** Makes the call, and waits for all that NCCL does for it. */
  async during<T>(call: () => Promise<T>): Promise<T> {
    this.#holders += 1
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
    this.#holders -= 1
    if (this.#holders === 0) this.#giveBack()
  }
}
