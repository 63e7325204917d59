import { forgetLeak, watchForLeak, whenMemoryUnused } from '@shoal/driver/basics'
import type { CallResult } from '@shoal/ffi'
import {
  nvshmem_align,
  nvshmem_calloc,
  nvshmem_free,
  nvshmem_malloc,
  nvshmemx_buffer_unregister_symmetric,
  nvshmemx_status,
} from '@shoal/nvshmem-sys'
import {
  DisposedError,
  type OptionKeys,
  optionalBoolean,
  optionalSignal,
  outOfRange,
  requireInteger,
  requireOptions,
  type WaitOptions,
  waitKeys,
} from '@shoal/types'
import { checkNvshmem, nvshmemError } from '../errors.js'
import { waitOf } from '../queue/callQueue.js'
import type { LiveSession } from '../queue/liveSession.js'

/** One allocation of symmetric memory, shared by its buffer and views. */
export class Allocation {
  readonly live: LiveSession
  readonly address: bigint
  readonly byteLength: number
  /** Memory of another owner that NVSHMEM has mapped here; undefined for heap memory. */
  #registered: object | undefined
  #freeing: Promise<void> | undefined

  constructor(live: LiveSession, address: bigint, byteLength: number, registered?: object) {
    this.live = live
    this.address = address
    this.byteLength = byteLength
    this.#registered = registered
    const { isOver } = live
    watchForLeak(this, `Symmetric memory of PE ${live.pe} (${byteLength} bytes)`, () =>
      isOver() ? undefined : 'it stays allocated until the session ends, since freeing it waits for the other PEs',
    )
  }

  get freed(): boolean {
    return this.#freeing !== undefined
  }

  /** Throws DisposedError after the memory was freed or its session has ended. */
  requireUsable(operation?: string): void {
    if (this.#freeing !== undefined) throw new DisposedError({ object: 'SymmetricBuffer', operation })
    this.live.requireOpen(operation ?? 'use of a SymmetricBuffer')
  }

  /**
   * Frees the memory together with all other PEs. Idempotent.
   *
   * A refused call leaves the memory unchanged. After the session has ended this does nothing.
   */
  free(wait: WaitOptions | undefined): Promise<void> {
    if (this.#freeing === undefined) {
      const refusal = this.live.isOver() ? undefined : this.live.queue.refusal('SymmetricBuffer.dispose', wait)
      if (refusal !== undefined) return Promise.reject(refusal)
      this.#freeing = this.#free(wait)
    }
    return this.#freeing
  }

  async #free(wait: WaitOptions | undefined): Promise<void> {
    forgetLeak(this)
    if (this.live.isOver()) return
    const { queue } = this.live
    const registered = this.#registered
    this.#registered = undefined
    // Other threads may use the memory, such as the thread of NCCL's groupOffThread, whose calls this queue does not
    // order.
    const after = whenMemoryUnused(this.address, this.byteLength)
    if (registered === undefined) {
      this.live.room?.give(this.address)
      await queue.run('SymmetricBuffer.dispose', () => nvshmem_free(this.address), { wait, after })
      return
    }
    const unregister = (): number => nvshmemx_buffer_unregister_symmetric(this.address, this.byteLength)
    const [status] = await queue.run('SymmetricBuffer.dispose', unregister, { wait, after, keep: [registered] })
    checkNvshmem(status, 'nvshmemx_buffer_unregister_symmetric')
  }
}

/** Options of an allocation of symmetric memory. */
export interface HeapOptions extends WaitOptions {
  /** Alignment in bytes, a power of two (`nvshmem_align`). Default: NVSHMEM's own, at least 16. */
  readonly alignment?: number | undefined
  /** Whether the memory is zeroed (`nvshmem_calloc`). Default: false, which leaves it uninitialized. */
  readonly zeroed?: boolean | undefined
}

const heapKeys: OptionKeys<HeapOptions> = { alignment: true, zeroed: true, ...waitKeys }

/** Allocates symmetric memory; every PE must call it with the same size. */
export async function allocate(
  live: LiveSession,
  byteLength: number,
  options: HeapOptions,
  operation: string,
): Promise<Allocation> {
  requireOptions(options, operation, heapKeys)
  const { alignment } = options
  optionalSignal(options.signal, operation)
  const zeroed = optionalBoolean(options.zeroed, operation, 'zeroed', false)
  if (alignment !== undefined && !isPowerOfTwo(requireInteger(alignment, operation, 'alignment', 1, 2 ** 30))) {
    throw outOfRange(operation, 'alignment', 'a power of two', alignment)
  }
  if (alignment !== undefined && zeroed) {
    throw new TypeError(`${operation}: alignment and zeroed exclude each other; fill the buffer instead`)
  }
  // For 0 bytes NVSHMEM returns no address, and transfers without an address end the process.
  const bytes = Math.max(byteLength, 1)
  // NVSHMEM 3.4.5 grows its heap by the size of one element.
  const [api, call] = zeroed
    ? (['nvshmem_calloc', () => nvshmem_calloc(1, bytes)] as const)
    : alignment !== undefined
      ? (['nvshmem_align', () => nvshmem_align(alignment, bytes)] as const)
      : (['nvshmem_malloc', () => nvshmem_malloc(bytes)] as const)
  const address = await inRoom(live, bytes, options, api, () =>
    live.queue.run(operation, call, { wait: waitOf(options) }),
  )
  if (address !== 0n) return new Allocation(live, address, byteLength)
  throw nvshmemError(
    nvshmemx_status.NVSHMEMX_ERROR_OUT_OF_MEMORY,
    api,
    `the symmetric heap of a PE has no ${byteLength} bytes left, or the PEs asked for different sizes`,
  )
}

/** Allocates if the heap has room. Errors of a stuck or ended session take precedence. */
async function inRoom(
  live: LiveSession,
  byteLength: number,
  options: HeapOptions,
  api: string,
  allocating: () => Promise<CallResult[]>,
): Promise<bigint> {
  const takesCalls = live.queue.takesCalls && options.signal?.aborted !== true
  const end = takesCalls ? live.room?.take(byteLength, options.alignment ?? 0, api) : undefined
  try {
    const [address] = (await allocating()) as [bigint]
    end?.(address)
    return address
  } catch (error) {
    // Wrong arguments allocate nothing, but a cancelled call may still allocate.
    end?.(error instanceof TypeError || error instanceof RangeError ? 0n : undefined)
    throw error
  }
}

function isPowerOfTwo(value: number): boolean {
  return (value & (value - 1)) === 0
}
