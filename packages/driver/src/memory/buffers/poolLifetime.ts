import {
  type CUmemoryPool,
  cuDeviceGetDefaultMemPool,
  cuDeviceGetMemPool,
  cuDeviceSetMemPool,
  cuMemPoolDestroy,
} from '@shoal/cuda-sys/driver'
import type { Context } from '../../core/context/context.js'
import { check, checkRelease } from '../../core/errors.js'
import { processIsEnding } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'

/** Pools that this thread made or imported and has not destroyed yet. */
const living = new Map<CUmemoryPool, PoolLifetime>()

/**
 * How long a pool that is ours to destroy lives: until nobody has it any more and the last memory from it was given
 * back. Drivers take a destroy before that, too, and see to the rest themselves. That is relied on for memory alone
 * which streams took from the pool while it was the current one of its device: nobody counts that.
 */
export class PoolLifetime {
  readonly #context: Context
  readonly #handle: CUmemoryPool
  /** Pieces of memory that came from it and were not given back. */
  #uses = 0
  #isOver = false

  constructor(context: Context, handle: CUmemoryPool) {
    this.#context = context
    this.#handle = handle
    context._addChild()
    living.set(handle, this)
  }

  /** That of a pool, whichever object the memory comes through; none for a pool that is somebody else's. */
  static of(handle: CUmemoryPool): PoolLifetime | undefined {
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
    try {
      if (this.#uses > 0) this.#restoreDefaultPool()
    } finally {
      this.#endIfUnused()
    }
  }

  /** A destroy would make the default pool the current one again at once, not with the last memory. */
  #restoreDefaultPool(): void {
    const context = this.#context
    if (processIsEnding() || context.disposed) return
    const { handle: device } = context.device
    const out = scratch()
    context._callDriver('cuDeviceGetMemPool', () => cuDeviceGetMemPool(out, device))
    if (out.u64[0] !== this.#handle) return
    context._callDriver('cuDeviceGetDefaultMemPool', () => cuDeviceGetDefaultMemPool(out, device))
    check(cuDeviceSetMemPool(device, out.u64[0] as CUmemoryPool), 'cuDeviceSetMemPool')
  }

  #endIfUnused(): void {
    if (!this.#isOver || this.#uses > 0) return
    const context = this.#context
    // After a reset another pool may have got the same handle.
    if (living.get(this.#handle) === this) living.delete(this.#handle)
    try {
      if (!processIsEnding()) destroyPool(context, this.#handle)
    } finally {
      context._removeChild()
    }
  }
}

/** A pool outlives a reset. Without a context libcudart would make one, perhaps of another device. */
function destroyPool(context: Context, pool: CUmemoryPool): void {
  if (context.disposed) checkRelease(cuMemPoolDestroy(pool), 'cuMemPoolDestroy')
  else context._release('memPoolDestroy', pool)
}
