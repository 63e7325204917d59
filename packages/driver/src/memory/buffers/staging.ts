import { hostView } from '@shoal/ffi'
import type { Context } from '../../core/context/context.js'
import { releaseAfterFailure } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'

const portable = 1
const smallest = 64 * 1024
/** Maximum size of a block that is kept for later copies. */
export const keptBytes = 64 * 1024 * 1024
/**
 * Maximum idle staging memory of a context: the largest block and smaller ones. The least recently used block is freed
 * first.
 */
const mostIdle = keptBytes + 32 * 1024 * 1024
/** Size of the block for large copies. One such block is kept in addition. */
export const partBytes = 4 * 1024 * 1024

/** Page-locked memory between a JavaScript array and the device. */
export interface StagingBlock {
  readonly address: bigint
  readonly bytes: Uint8Array
  /** @internal */
  readonly detach: () => void
}

/**
 * Page-locked blocks for copies between the device and ordinary JavaScript memory. A direct CUDA copy would block the
 * calling thread; a copy from or to page-locked memory is really asynchronous.
 */
export class StagingPool {
  readonly #context: Context
  readonly #idle: StagingBlock[] = []
  #idleBytes = 0
  #idleForParts: StagingBlock | undefined

  private constructor(context: Context) {
    this.#context = context
    context._beforeClose((reason) => {
      const blocks = this.#idle.splice(0)
      if (this.#idleForParts !== undefined) blocks.push(this.#idleForParts)
      this.#idleForParts = undefined
      for (const block of blocks) {
        block.detach()
        if (reason !== 'reset') this.#context._release('memFreeHost', block.address)
      }
      this.#idleBytes = 0
    })
  }

  /** Returns the pool of a context. */
  static of(context: Context): StagingPool {
    let pool = pools.get(context)
    if (pool === undefined) {
      pool = new StagingPool(context)
      pools.set(context, pool)
    }
    return pool
  }

  /** Takes a block of at least `byteLength` bytes. */
  take(byteLength: number): StagingBlock {
    // A block that is too large to keep cannot be reused, so its size is not rounded up.
    const size = byteLength > keptBytes ? byteLength : Math.max(smallest, 2 ** Math.ceil(Math.log2(byteLength)))
    if (size === partBytes && this.#idleForParts !== undefined) {
      const block = this.#idleForParts
      this.#idleForParts = undefined
      return block
    }
    const index = this.#idle.findIndex((block) => block.bytes.length === size)
    const idle = this.#idle[index]
    if (idle !== undefined) {
      this.#idle.splice(index, 1)
      this.#idleBytes -= size
      return idle
    }
    const out = scratch()
    this.#context._callWithRoom(size, 'memHostAlloc', out, size, portable)
    const address = out.u64[0] as bigint
    try {
      const { buffer, detach } = hostView(address, size)
      return { address, bytes: new Uint8Array(buffer), detach }
    } catch (error) {
      releaseAfterFailure('Page-locked memory', () => freeHost(this.#context, address))
      throw error
    }
  }

  /** Returns a block that no copy uses any more. */
  give(block: StagingBlock): void {
    const size = block.bytes.length
    if (this.#context.disposed) return
    if (size === partBytes && this.#idleForParts === undefined) {
      this.#idleForParts = block
      return
    }
    if (size > keptBytes) {
      this.#free(block)
      return
    }
    this.#idle.push(block)
    this.#idleBytes += size
    while (this.#idleBytes > mostIdle) {
      const oldest = this.#idle.shift() as StagingBlock
      this.#idleBytes -= oldest.bytes.length
      this.#free(oldest)
    }
  }

  #free(block: StagingBlock): void {
    block.detach()
    freeHost(this.#context, block.address)
  }
}

function freeHost(context: Context, address: bigint): void {
  context._releases.add('Page-locked memory', [context._releaseCall('memFreeHost', address)], () => undefined)
}

const pools = new WeakMap<Context, StagingPool>()
