import { forgetLeak, releasePrimaryContexts, watchForLeak } from '@shoal/driver/basics'
import { type BackgroundWork, offThread } from '@shoal/ffi'
import { nccl, ncclCommAbort, ncclCommDestroy, ncclCommFinalize, ncclResult_t } from '@shoal/nccl-sys'
import { BusyError, DisposedError } from '@shoal/types'
import { attachSuppressed } from '../attach.js'
import { checkNccl, ncclError } from '../errors.js'
import { whenNoGroup } from '../group/groupState.js'
import { asyncStatus } from '../lifetime/asyncStatus.js'
import { type CommunicatorIdentity, CommunicatorStateError } from '../lifetime/communicatorErrors.js'
import {
  forgetChildren,
  inTurn,
  type LiveCommunicator,
  releaseChildren,
  settled,
  whenNothingPending,
} from '../lifetime/live.js'
import type { LocalRanks } from '../lifetime/localRanks.js'
import { addContext, removeContext } from '../lifetime/openContexts.js'
import { whenContextDone } from '../lifetime/streamWait.js'
import { type CommunicatorWaitOptions, requireWait } from '../lifetime/waitOptions.js'
import { type Failure, isFatal, Watchdog } from '../lifetime/watchdog.js'
import { ncclVersion } from '../version.js'
import type { NativeCommunicator } from './init.js'

/** A rank and the number of ranks. */
export type Place = Pick<CommunicatorIdentity, 'rank' | 'worldSize'>

type State = 'open' | 'suspended' | 'revoked' | 'finalized' | 'destroyed' | 'aborted'

// The collector never destroys a communicator: the call waits for other ranks, and a collector that waits for another
// process would stop the program forever.
const stays = (): string => 'it stays open until the process ends'

/** Milliseconds that an abort waits for a call on another thread that cannot be ended. */
const abortGrace = 2000
const firstWithAsyncErrors = 2402
const firstWithFinalize = 21403
const firstWithRuntimeConnect = 22203

/**
 * The life of one communicator after its creation: its states, its calls on other threads, and all ways to its end.
 * `owner` is the program's object.
 */
export class CommunicatorLifecycle {
  readonly native: NativeCommunicator
  readonly live: LiveCommunicator
  readonly watchdog: Watchdog
  /** Name for messages. */
  readonly name: string
  readonly #owner: object
  /** Communicators that share the resources of this one. */
  readonly #sharing = new Set<CommunicatorLifecycle>()
  #parent: CommunicatorLifecycle | undefined
  #state: State = 'open'
  #finalizing: Promise<void> | undefined
  #ending: Promise<void> | undefined
  #aborting: Promise<void> | undefined
  /** The call of NCCL that frees the communicator. It cannot be stopped. */
  #freeing: Promise<unknown> | undefined
  /** Work for the time after NCCL has freed the communicator. */
  readonly #afterFree: (() => void)[] = []
  #isFreed = false
  /** An error during the end of the communicator. The end continues anyway. */
  #problem: { readonly error: unknown } | undefined

  constructor(
    owner: object,
    native: NativeCommunicator,
    { rank, worldSize }: Omit<CommunicatorIdentity, 'deviceOrdinal'>,
    signal: AbortSignal | undefined,
  ) {
    this.#owner = owner
    this.native = native
    const { ordinal: deviceOrdinal, handle: context } = native.context
    this.name = `Communicator of rank ${rank} of ${worldSize} on device ${deviceOrdinal}`
    const live: LiveCommunicator = {
      handle: native.handle,
      rank,
      worldSize,
      deviceOrdinal,
      context,
      isBlocking: native.isBlocking,
      guard: (operation, work, options) => this.watchdog.guard(operation, options, work),
      whenFreed: (work) => this.whenFreed(work),
      graphs: { users: 0, unused: () => undefined },
      requireUsable: (operation) => this.requireUsable(operation),
      // All entries exist from the start, so that V8 sees one shape for all communicators.
      recent: [undefined, undefined, undefined, undefined],
      children: undefined,
      pending: undefined,
      localRanks: undefined,
      isConnected: true,
      connectedPeers: undefined,
      group: 0,
      groupLength: 0,
      lastOperation: undefined,
      ended: undefined,
    }
    this.live = live
    this.watchdog = new Watchdog({
      rank,
      worldSize,
      deviceOrdinal,
      get lastOperation() {
        return live.lastOperation
      },
      status: () => this.#watchedStatus(),
      errorOf: (status) => ncclError(status, 'ncclCommGetAsyncError', native.handle),
      abort: (failure) => this.#abortNow(failure),
    })
    addContext(context)
    watchForLeak(owner, this.name, stays, 'destroy() or abort()')
    if (signal !== undefined) this.watchdog.watchSignal(signal)
  }

  get state(): State {
    return this.#state
  }

  /** The promise of the communicator's end, by `destroy` or an abort; undefined before. */
  get ending(): Promise<void> | undefined {
    return this.#ending
  }

  /** Runs `work` after NCCL has freed the communicator and no longer works for it in the background. */
  whenFreed(work: () => void): void {
    if (this.#isFreed) work()
    else this.#afterFree.push(work)
  }

  /** Registers a child that shares the resources of this communicator and therefore ends first. */
  share(child: CommunicatorLifecycle): void {
    this.#sharing.add(child)
    child.#parent = this
  }

  requireUsable(operation: string): void {
    if (this.#state !== 'open') throw this.#refusal(operation)
  }

  requireManageable(operation: string): void {
    if (this.#state !== 'revoked') this.requireUsable(operation)
  }

  requireAlive(operation: string): void {
    if (this.#ending !== undefined) throw this.#refusal(operation)
  }

  /** Sets the ranks of the communicator in this thread, which already count this one. */
  joinLocalRanks(localRanks: LocalRanks): void {
    localRanks.createdRanks.add(this.live.rank)
    this.live.localRanks = localRanks
    if (!this.native.isBlocking) return
    this.live.isConnected = initConnects()
    this.live.connectedPeers = new Set()
  }

  /**
   * Runs `work` when no other call uses this communicator. The promise rejects when the communicator is aborted
   * meanwhile; `drop` then receives the late result of the work.
   */
  guarded<T>(
    operation: string,
    options: CommunicatorWaitOptions,
    work: (background: BackgroundWork) => Promise<T>,
    drop?: (value: T) => void,
  ): Promise<T> {
    const inItsTurn = (background: BackgroundWork): Promise<T> =>
      inTurn([this.live], operation, () => work(background), background)
    return this.watchdog.guard(operation, options, inItsTurn, drop)
  }

  /** Makes a call of NCCL on another thread and waits until NCCL has finished it. */
  async call(api: string, call: () => void, background: BackgroundWork, settlesFirst = true): Promise<void> {
    if (settlesFirst && !this.native.isBlocking) await settled(this.live, api)
    const [status = 0] = await offThread({ context: this.live.context, background }, call)
    checkNccl(status, api, this.native.handle)
    // Some functions of NCCL return success although they continue in the background.
    if (!this.native.isBlocking || status === ncclResult_t.ncclInProgress) await settled(this.live, api)
  }

  /** Makes a call, in turn, that changes the communicator's state, unless the state has changed meanwhile. */
  changing(
    operation: string,
    options: CommunicatorWaitOptions | undefined,
    api: string,
    call: () => void,
    from: State,
    to: State,
  ): Promise<void> {
    return this.guarded(operation, requireWait(options, `Communicator.${operation}`), async (background) => {
      await this.call(api, call, background)
      if (this.#state === from) this.#state = to
    })
  }

  /** Refuses later operations. Returns a function that rejects the pending waits. */
  revoked(operation: string): () => void {
    this.#state = 'revoked'
    return this.watchdog.interrupt(operation)
  }

  /** Implements `Communicator.finalize`. */
  finalize(waitOptions: CommunicatorWaitOptions): Promise<void> {
    if (this.#state !== 'finalized') this.requireUsable('finalize')
    else this.requireAlive('finalize')
    if (this.live.graphs.users > 0) return this.#refuseForGraphs('finalize')
    this.#state = 'finalized'
    const finalizing = this.#finalizing
    if (finalizing !== undefined) return this.watchdog.guard('finalize', waitOptions, () => finalizing)
    this.#finalizing = this.watchdog.guard('finalize', waitOptions, async (background) => {
      await this.#closeChildren('finalize', background)
      await inTurn([this.live], 'finalize', () => this.#finalizeNow(background), background)
    })
    return this.#finalizing
  }

  /** Implements `Communicator.destroy`. */
  destroy(waitOptions: CommunicatorWaitOptions): Promise<void> {
    const ending = this.#ending
    if (ending !== undefined) {
      // A caller that joins a running end has separate limits for its wait.
      const isLimited = waitOptions.signal !== undefined || waitOptions.timeout !== undefined
      const isOver = this.#isFreed || this.watchdog.failure !== undefined
      return isLimited && !isOver ? this.watchdog.guard('destroy', waitOptions, () => ending) : ending
    }
    if (this.#isInGraphs()) return this.#refuseForGraphs('destroy')
    const isIdle = this.#state === 'finalized' || this.#state === 'revoked' || this.#state === 'suspended'
    this.#state = 'destroyed'
    forgetLeak(this.#owner)
    this.#ending = this.watchdog.guard('destroy', waitOptions, async (background) => {
      // A failed finalize() has rejected for its own caller.
      await this.#finalizing?.catch(() => undefined)
      await this.#closeChildren('destroy', background)
      await inTurn([this.live], 'destroy', () => this.#destroyNow(isIdle, background), background)
    })
    return this.#ending
  }

  /** Implements `Communicator.abort`. */
  abort(): Promise<void> {
    if (this.#aborting !== undefined) return this.#aborting
    const hasWork = this.live.lastOperation !== undefined || this.live.pending !== undefined
    if (this.#ending !== undefined && (this.#freeing !== undefined || !hasWork)) return this.#ending
    this.watchdog.fail({ reason: 'abort' })
    return this.#aborting ?? Promise.resolve()
  }

  /** Whether a graph has captured operations of this communicator or of one that ends with it. */
  #isInGraphs(): boolean {
    return this.live.graphs.users > 0 || [...this.#sharing].some((child) => child.#isInGraphs())
  }

  /** Refuses the end, because NCCL would wait for the graphs' end on a thread that cannot be stopped. */
  #refuseForGraphs(operation: 'finalize' | 'destroy'): Promise<never> {
    const api = `Communicator.${operation}`
    const hint = 'dispose of the graphs that captured its operations, and of their executable graphs, first'
    return Promise.reject(new BusyError({ object: 'Communicator', api, underWay: 'captured graphs', hint }))
  }

  #refusal(operation: string): Error {
    const { rank, worldSize, deviceOrdinal } = this.live
    const state = this.#state
    if (state === 'suspended' || state === 'revoked') {
      return new CommunicatorStateError({ operation, state, rank, worldSize, deviceOrdinal })
    }
    const isOwnAbort = this.watchdog.failure?.reason === 'abort'
    const failed = isOwnAbort ? undefined : this.watchdog.refusal(operation)
    return failed ?? new DisposedError({ object: this.name, operation })
  }

  /**
   * Status for the watchdog. While NCCL works for a nonblocking communicator, the caller that waits for it polls
   * instead.
   */
  #watchedStatus(): number {
    if (this.#freeing !== undefined || this.#aborting !== undefined) return ncclResult_t.ncclSuccess
    if (!this.native.isBlocking && this.live.pending !== undefined) return ncclResult_t.ncclInProgress
    if (!nccl.has('ncclCommGetAsyncError', firstWithAsyncErrors)) return ncclResult_t.ncclSuccess
    return asyncStatus(this.native.handle)
  }

  /** Ends objects that were created with this communicator before the communicator itself. */
  async #closeChildren(how: 'finalize' | 'destroy', background: BackgroundWork): Promise<void> {
    // An open group may contain operations of this communicator.
    await whenNoGroup()
    await whenNothingPending(this.live, background)
    const problems = await releaseChildren(this.live)
    if (how === 'destroy') {
      const ends = await Promise.allSettled([...this.#sharing].map((child) => child.destroy({})))
      problems.push(...ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : [])))
    }
    for (const problem of problems.slice(1)) attachSuppressed(problems[0], problem)
    this.#problem ??= problems.length === 0 ? undefined : { error: problems[0] }
  }

  #throwProblem(): void {
    const problem = this.#problem
    this.#problem = undefined
    if (problem !== undefined) throw problem.error
  }

  async #finalizeNow(background: BackgroundWork): Promise<void> {
    const { handle } = this.native
    if (this.native.isBlocking) await this.#deviceIdle(background)
    await this.call('ncclCommFinalize', () => void ncclCommFinalize(handle), background)
    this.#throwProblem()
  }

  async #destroyNow(isIdle: boolean, background: BackgroundWork): Promise<void> {
    const { handle } = this.native
    if (!isIdle) await this.#workEnded(background)
    if (this.watchdog.failure !== undefined) return
    await this.#free('ncclCommDestroy', () => void ncclCommDestroy(handle), background)
    this.#throwProblem()
  }

  /**
   * Waits for the work before the communicator is freed, because NCCL reports errors, and the watchdog works, only
   * until then.
   */
  async #workEnded(background: BackgroundWork): Promise<void> {
    if (this.native.isBlocking) await this.#deviceIdle(background)
    if (!nccl.has('ncclCommFinalize', firstWithFinalize)) return
    try {
      await this.call('ncclCommFinalize', () => void ncclCommFinalize(this.native.handle), background)
    } catch (error) {
      // A lost communicator is aborted. Any other communicator is freed anyway.
      if (isFatal(error) || this.watchdog.failure !== undefined) throw error
      this.#problem ??= { error }
    }
  }

  /**
   * Waits until the device's work completes. NCCL's own wait would be in a call that cannot be ended, during which the
   * communicator cannot be aborted.
   */
  async #deviceIdle(background: BackgroundWork): Promise<void> {
    if (this.live.lastOperation === undefined) return
    try {
      await whenContextDone(this.live.context, background, this.watchdog.failing)
    } catch (error) {
      if (this.watchdog.failure !== undefined) throw error
      // A failed context has ended its work. NCCL reports its own consequences.
    }
  }

  async #free(api: string, call: () => void, background: BackgroundWork = {}): Promise<void> {
    this.live.ended = this.#state
    const { context } = this.native
    const freeing = offThread({ context: context.handle, background }, call)
    this.#freeing = freeing.catch(() => undefined)
    try {
      const [status = 0] = await freeing
      checkNccl(status, api)
    } finally {
      this.#isFreed = true
      for (const work of this.#afterFree.splice(0)) work()
      this.watchdog.stop()
      if (this.#parent !== undefined) this.#parent.#sharing.delete(this)
      removeContext(context.handle)
      await releasePrimaryContexts([context])
    }
  }

  /** Ends the communicator now, for the watchdog. */
  #abortNow(failure: Failure): Promise<void> {
    this.#state = 'aborted'
    this.live.ended = 'aborted'
    forgetLeak(this.#owner)
    const aborting = this.#abort(failure)
    this.#aborting = aborting
    this.#ending ??= aborting
    // The watchdog informs the waiting callers.
    aborting.catch(() => undefined)
    return aborting
  }

  async #abort(failure: Failure): Promise<void> {
    // An open group may contain operations of this communicator.
    await whenNoGroup()
    for (const child of this.#sharing) child.watchdog.fail({ reason: 'parent', cause: failure.cause })
    if (this.#freeing !== undefined) {
      if (!(await endsSoon(this.#freeing))) this.#warnStuck('it is freed when that returns')
      return
    }
    forgetChildren(this.live)
    const background: BackgroundWork = {}
    const free = (): Promise<void> =>
      this.#free('ncclCommAbort', () => void ncclCommAbort(this.native.handle), background)
    const { pending, graphs } = this.live
    if (graphs.users > 0) {
      // NCCL ends the work immediately and then waits for the graphs' end.
      free().catch((error: unknown) => this.#warnNotAborted(error))
      background.release?.()
      return
    }
    if (pending === undefined || (await endsSoon(pending.ended))) return free()
    this.#warnStuck('it is aborted when that returns')
    pending.ended.then(free).catch((error: unknown) => this.#warnNotAborted(error))
  }

  #warnNotAborted(error: unknown): void {
    process.emitWarning(`${this.name} could not be aborted: ${String(error)}`, 'ShoalWarning')
  }

  #warnStuck(what: string): void {
    process.emitWarning(
      `${this.name}: a call of NCCL waits for other ranks on another thread and cannot be ended; ${what}`,
      'ShoalWarning',
    )
  }
}

/** Whether the init connects the ranks for operations of all ranks. */
function initConnects(): boolean {
  return ncclVersion().value < firstWithRuntimeConnect || process.env['NCCL_RUNTIME_CONNECT'] === '0'
}

/** Whether a promise, which never rejects, settles within the time of an abort. */
async function endsSoon(ended: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), abortGrace)
  })
  const soon = await Promise.race([ended.then(() => true), late])
  clearTimeout(timer)
  return soon
}
