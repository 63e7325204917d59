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

/** Pools that this thread created or imported and has not destroyed yet. */
const living = new Map<CUmemoryPool, PoolLifetime>()

/**
 * The lifetime of an owned pool. It ends after dispose(), when the last memory of the pool is freed.
 *
 * Drivers accept an earlier destroy too and delay it themselves. Shoal relies on that only for memory that streams took
 * while the pool was its device's current pool, because that memory is not counted.
 */
export class PoolLifetime {
  readonly #context: Context
  readonly #handle: CUmemoryPool
  /** Number of pieces of memory from the pool that are not freed. */
  #uses = 0
  #isOver = false

  constructor(context: Context, handle: CUmemoryPool) {
    this.#context = context
    this.#handle = handle
    context._addChild()
    living.set(handle, this)
  }

  /** Returns the lifetime of a pool, independent of the pool's object; undefined if another owner has the pool. */
  static of(handle: CUmemoryPool): PoolLifetime | undefined {
    return living.get(handle)
  }

  /** Counts new memory of the pool. */
  addUse(): void {
    this.#uses += 1
  }

  /** Called when memory of the pool was freed, or its free was queued. */
  endUse(): void {
    this.#uses -= 1
    this.#endIfUnused()
  }

  /** Ends allocation from the pool. */
  end(): void {
    this.#isOver = true
    try {
      if (this.#uses > 0) this.#restoreDefaultPool()
    } finally {
      this.#endIfUnused()
    }
  }

  /** Makes the default pool current now. The delayed destroy would do so only after the last memory is freed. */
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
    // After a reset another pool may have the same handle.
    if (living.get(this.#handle) === this) living.delete(this.#handle)
    try {
      if (!processIsEnding()) destroyPool(context, this.#handle)
    } finally {
      context._removeChild()
    }
  }
}

/**
 * Destroys a pool, which outlives a reset. libcudart needs a current context here: otherwise it would create one,
 * perhaps of another device.
 */
function destroyPool(context: Context, pool: CUmemoryPool): void {
  if (context.disposed) checkRelease(cuMemPoolDestroy(pool), 'cuMemPoolDestroy')
  else context._release('memPoolDestroy', pool)
}
