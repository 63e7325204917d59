import { forgetLeak, type PrimaryContext, releasePrimaryContexts, watchForLeak } from '@shoal/driver/basics'
import { isSoftwareDevice } from '@shoal/ffi'
import { nvshmemx_hostlib_finalize } from '@shoal/nvshmem-sys'
import { DisposedError, type WaitOptions } from '@shoal/types'
import { AtomicKernels } from '../atomics/atomicKernels.js'
import type { CallQueue } from '../queue/callQueue.js'
import { joinEnd } from '../queue/joinEnd.js'
import type { LiveSession } from '../queue/liveSession.js'
import { noRecentTransfers } from '../rma/recentTransfers.js'
import { environmentOfNvshmem } from '../workarounds/environment.js'
import { hasFault } from '../workarounds/faults.js'
import { HeapRoom } from '../workarounds/heapRoom.js'
import { heapShape } from '../workarounds/heapShape.js'
import { reduceScratchOf } from '../workarounds/reduceScratch.js'
import { recordState, releaseSession } from './processSession.js'
import type { Started } from './start.js'
import { nvshmemVersion } from './version.js'

const name = 'The NVSHMEM session'

/** Resources of a started session, and its end: with the other PEs or without them. */
export class SessionLifetime {
  readonly live: LiveSession
  readonly #queue: CallQueue
  readonly #context: PrimaryContext
  readonly #memory: readonly object[]
  readonly #kernels: AtomicKernels | undefined
  /** The program's `Session`. */
  #owner: object | undefined
  #ended: string | undefined
  #ending: Promise<void> | undefined

  constructor({ queue, pe, peCount, memory, atomics }: Started, context: PrimaryContext) {
    this.#queue = queue
    this.#context = context
    this.#memory = memory
    this.#kernels = atomics instanceof AtomicKernels ? atomics : undefined
    const environment = environmentOfNvshmem()
    const version = nvshmemVersion()
    this.live = {
      queue,
      deviceOrdinal: context.ordinal,
      context: context.handle,
      pe,
      peCount,
      room: hasFault('heapGrowth', version)
        ? new HeapRoom(queue, context.ordinal, heapShape(environment, isSoftwareDevice()))
        : undefined,
      scratch: reduceScratchOf(environment, version),
      recent: noRecentTransfers(),
      untilQuiet: new Set(),
      registered: new Set(),
      isOver: () => this.#ended !== undefined,
      requireOpen: (operation) => {
        if (this.#ended !== undefined) throw new DisposedError({ object: name, operation })
      },
    }
  }

  /** Reports a leak when `owner` is collected before the session has ended. */
  watch(owner: object): void {
    this.#owner = owner
    watchForLeak(owner, `${name} of PE ${this.live.pe}`, () => 'it runs until the process ends', 'finalize()')
  }

  /** How the session has ended; undefined while it runs. */
  get ended(): string | undefined {
    return this.#ended
  }

  /** Ends NVSHMEM together with the other PEs. Idempotent; a refusal leaves the session unchanged. */
  finalize(wait: WaitOptions | undefined, api = 'Session.finalize'): Promise<void> {
    if (this.#ending !== undefined) return joinEnd(this.#ending, wait, api)
    const refusal = this.#queue.refusal(api, wait)
    if (refusal !== undefined) return Promise.reject(refusal)
    this.#ending = this.#finalize(wait)
    return this.#ending
  }

  /** Ends the session without the other PEs and leaves NVSHMEM as it is. Idempotent. */
  abandon(): void {
    if (this.#ended !== undefined) return
    this.#end('was abandoned')
    this.#queue.giveUpAll((operation) => new DisposedError({ object: name, operation }))
    this.#queue.abandon(name)
    this.#ending = Promise.resolve()
    recordState('was abandoned')
  }

  #end(how: string): void {
    this.#ended = how
    if (this.#owner !== undefined) forgetLeak(this.#owner)
    this.live.untilQuiet.clear()
  }

  #recordEnd(): void {
    this.#kernels?.recordUnload()
    nvshmemx_hostlib_finalize()
  }

  async #finalize(wait: WaitOptions = {}): Promise<void> {
    const ended = this.#queue.run('Session.finalize', () => this.#recordEnd(), { wait, keep: this.#memory })
    // Earlier calls run first; later calls are refused.
    this.#end('finalized')
    try {
      await ended
    } catch (error) {
      this.#queue.close(name)
      recordState('did not finalize')
      throw error
    }
    this.#queue.close(name)
    for (const giveBack of this.live.registered) giveBack()
    releaseSession()
    await this.#kernels?.release(this.#context.handle)
    await releasePrimaryContexts([this.#context])
  }
}
