import type { CUmemoryPool } from '@shoal/cuda-sys/driver'
import type { Context } from '../context.js'
import { processIsEnding } from '../lifetime.js'

/** Pools that this thread made or imported and has not destroyed yet. */
const living = new Map<CUmemoryPool, PoolLife>()

/**
 * How long a pool that is ours to destroy lives: until nobody has it any more and the last memory from it was given back.
 * Drivers take a destroy before that, too, and are to see to the rest themselves; nothing here relies on how they do.
 */
export class PoolLife {
  readonly #context: Context
  readonly #handle: CUmemoryPool
  readonly #destroy: (context: Context, pool: CUmemoryPool) => void
  /** Pieces of memory that came from it and were not given back. */
  #uses = 0
  #isOver = false

  constructor(context: Context, handle: CUmemoryPool, destroy: (context: Context, pool: CUmemoryPool) => void) {
    this.#context = context
    this.#handle = handle
    this.#destroy = destroy
    context._addChild()
    living.set(handle, this)
  }

  /** That of a pool, whichever object the memory comes through; none for a pool that is somebody else's. */
  static of(handle: CUmemoryPool): PoolLife | undefined {
    return living.get(handle)
  }

  /** Memory came from it. */
  addUse(): void {
    this.#uses += 1
  }

  /** Such memory was given back, or queued to be. */
  endUse(): void {
    this.#uses -= 1
    this.#endIfUnused()
  }

  /** Nobody can allocate from it any more. */
  end(): void {
    this.#isOver = true
    this.#endIfUnused()
  }

  #endIfUnused(): void {
    if (!this.#isOver || this.#uses > 0) return
    const context = this.#context
    // After a reset another pool may have got the same handle.
    if (living.get(this.#handle) === this) living.delete(this.#handle)
    try {
      if (!processIsEnding()) this.#destroy(context, this.#handle)
    } finally {
      context._removeChild()
    }
  }
}
