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

/** One piece of symmetric memory: what its buffers and views have in common. */
export class Allocation {
  readonly live: LiveSession
  readonly address: bigint
  readonly byteLength: number
  /** The memory of somebody else that NVSHMEM has mapped here; undefined for memory of its own heap. */
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

  /** Throws DisposedError when the memory or its session is gone. */
  requireUsable(operation?: string): void {
    if (this.#freeing !== undefined) throw new DisposedError({ object: 'SymmetricBuffer', operation })
    this.live.requireOpen(operation ?? 'use of a SymmetricBuffer')
  }

  /**
   * Gives the memory back; all PEs have to. Idempotent; what refuses it leaves the memory as it is. After the end of
   * the session there is nothing left to do.
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
    // Other threads may work with it, such as that of NCCL's groupOffThread, and queues of calls do not know each
    // other.
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

/** How symmetric memory is allocated. */
export interface HeapOptions extends WaitOptions {
  /** Alignment in bytes, a power of two (`nvshmem_align`). Default: NVSHMEM's own, at least 16. */
  readonly alignment?: number | undefined
  /** Whether all bits are zero (`nvshmem_calloc`). Default `false`: whatever was there before. */
  readonly zeroed?: boolean | undefined
}

const heapKeys: OptionKeys<HeapOptions> = { alignment: true, zeroed: true, ...waitKeys }

/** Takes memory from the symmetric heap, which every PE has to do with the same size. */
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
  // For no bytes NVSHMEM gives no address, which its transfers refuse by ending the process.
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

/** Allocates where the heap has room. A session that is stuck, or over, says that instead. */
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
    // Of wrong arguments nothing comes; a call that was given up may still allocate.
    end?.(error instanceof TypeError || error instanceof RangeError ? 0n : undefined)
    throw error
  }
}

function isPowerOfTwo(value: number): boolean {
  return (value & (value - 1)) === 0
}
