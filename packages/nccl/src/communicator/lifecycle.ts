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

/** A rank of so many. */
export type Place = Pick<CommunicatorIdentity, 'rank' | 'worldSize'>

type State = 'open' | 'suspended' | 'revoked' | 'finalized' | 'destroyed' | 'aborted'

// A communicator is never destroyed by the collector: that call waits for the other ranks, and a collector that waits
// for another process stops the program for ever.
const stays = (): string => 'it stays open until the process ends'

/** How long an abort waits for a call of NCCL that runs on another thread and cannot be ended. */
const abortGrace = 2000
const firstWithAsyncErrors = 2402
const firstWithFinalize = 21403
const firstWithRuntimeConnect = 22203

/**
 * The life of one communicator, from when NCCL has made it: what it may be asked for in which state, the calls that run
 * on another thread, and every way to its end. `owner` is the object that a program holds.
 */
export class CommunicatorLifecycle {
  readonly native: NativeCommunicator
  readonly live: LiveCommunicator
  readonly watchdog: Watchdog
  /** For messages. */
  readonly name: string
  readonly #owner: object
  /** Those that share the resources of this one. */
  readonly #sharing = new Set<CommunicatorLifecycle>()
  #parent: CommunicatorLifecycle | undefined
  #state: State = 'open'
  #finalizing: Promise<void> | undefined
  #ending: Promise<void> | undefined
  #aborting: Promise<void> | undefined
  /** The call of NCCL that frees it, which nothing can stop. */
  #freeing: Promise<unknown> | undefined
  /** To be done once NCCL has freed it. */
  readonly #afterFree: (() => void)[] = []
  #isFreed = false
  /** What failed on the way to the end, which goes on all the same. */
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
      // All there from the start: V8 then sees one shape in every communicator.
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

  /** Its end, by `destroy` or an abort, that is under way or was. */
  get ending(): Promise<void> | undefined {
    return this.#ending
  }

  /** Has `work` done once NCCL has freed the communicator, and so does nothing for it any more in the background. */
  whenFreed(work: () => void): void {
    if (this.#isFreed) work()
    else this.#afterFree.push(work)
  }

  /** `child` shares the resources of this one: it ends first. */
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

  /** It is one of the ranks of its communicator that are in this thread, which count it already. */
  joinLocalRanks(localRanks: LocalRanks): void {
    localRanks.createdRanks.add(this.live.rank)
    this.live.localRanks = localRanks
    if (!this.native.isBlocking) return
    this.live.isConnected = initConnects()
    this.live.connectedPeers = new Set()
  }

  /**
   * Runs `work` when nothing else runs with this communicator; the promise rejects when it is aborted meanwhile, and
   * then `drop` gets what comes of the work all the same.
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

  /** Makes a call of NCCL on another thread and waits until NCCL is done with it. */
  async call(api: string, call: () => void, background: BackgroundWork, settlesFirst = true): Promise<void> {
    if (settlesFirst && !this.native.isBlocking) await settled(this.live, api)
    const [status = 0] = await offThread({ context: this.live.context, background }, call)
    checkNccl(status, api, this.native.handle)
    // Some functions of NCCL say success although they go on in the background.
    if (!this.native.isBlocking || status === ncclResult_t.ncclInProgress) await settled(this.live, api)
  }

  /**
   * Makes a call in its turn that takes the communicator from one state to another, unless something else has happened
   * meanwhile.
   */
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

  /** No operation follows; waits for what is under way are going to be rejected by the function returned. */
  revoked(operation: string): () => void {
    this.#state = 'revoked'
    return this.watchdog.interrupt(operation)
  }

  /** See `Communicator.finalize`. */
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

  /** See `Communicator.destroy`. */
  destroy(waitOptions: CommunicatorWaitOptions): Promise<void> {
    const ending = this.#ending
    if (ending !== undefined) {
      // Whoever comes while it ends waits with limits of its own.
      const isLimited = waitOptions.signal !== undefined || waitOptions.timeout !== undefined
      const isOver = this.#isFreed || this.watchdog.failure !== undefined
      return isLimited && !isOver ? this.watchdog.guard('destroy', waitOptions, () => ending) : ending
    }
    if (this.#isInGraphs()) return this.#refuseForGraphs('destroy')
    const isIdle = this.#state === 'finalized' || this.#state === 'revoked' || this.#state === 'suspended'
    this.#state = 'destroyed'
    forgetLeak(this.#owner)
    this.#ending = this.watchdog.guard('destroy', waitOptions, async (background) => {
      // A failed finalize() has told its own caller.
      await this.#finalizing?.catch(() => undefined)
      await this.#closeChildren('destroy', background)
      await inTurn([this.live], 'destroy', () => this.#destroyNow(isIdle, background), background)
    })
    return this.#ending
  }

  /** See `Communicator.abort`. */
  abort(): Promise<void> {
    if (this.#aborting !== undefined) return this.#aborting
    const hasWork = this.live.lastOperation !== undefined || this.live.pending !== undefined
    if (this.#ending !== undefined && (this.#freeing !== undefined || !hasWork)) return this.#ending
    this.watchdog.fail({ reason: 'abort' })
    return this.#aborting ?? Promise.resolve()
  }

  /** Whether a graph has captured operations of it, or of a communicator that ends with it. */
  #isInGraphs(): boolean {
    return this.live.graphs.users > 0 || [...this.#sharing].some((child) => child.#isInGraphs())
  }

  /** NCCL would wait for the end of the graphs, on a thread that nothing can stop. */
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

  /** What the watchdog sees. While NCCL works for a communicator that is not blocking, whoever waits for that asks. */
  #watchedStatus(): number {
    if (this.#freeing !== undefined || this.#aborting !== undefined) return ncclResult_t.ncclSuccess
    if (!this.native.isBlocking && this.live.pending !== undefined) return ncclResult_t.ncclInProgress
    if (!nccl.has('ncclCommGetAsyncError', firstWithAsyncErrors)) return ncclResult_t.ncclSuccess
    return asyncStatus(this.native.handle)
  }

  /** What was made with this communicator ends before it does. */
  async #closeChildren(how: 'finalize' | 'destroy', background: BackgroundWork): Promise<void> {
    // It may hold operations of this communicator.
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
   * Waits for the work before the communicator is freed: NCCL tells what has failed, and the watchdog can look at it,
   * only until then.
   */
  async #workEnded(background: BackgroundWork): Promise<void> {
    if (this.native.isBlocking) await this.#deviceIdle(background)
    if (!nccl.has('ncclCommFinalize', firstWithFinalize)) return
    try {
      await this.call('ncclCommFinalize', () => void ncclCommFinalize(this.native.handle), background)
    } catch (error) {
      // A lost communicator is aborted; any other one is freed all the same.
      if (isFatal(error) || this.watchdog.failure !== undefined) throw error
      this.#problem ??= { error }
    }
  }

  /**
   * Waits until the device has done its work. NCCL would wait itself, but in a call that nothing can end, and a
   * communicator cannot be aborted beside it.
   */
  async #deviceIdle(background: BackgroundWork): Promise<void> {
    if (this.live.lastOperation === undefined) return
    try {
      await whenContextDone(this.live.context, background, this.watchdog.failing)
    } catch (error) {
      if (this.watchdog.failure !== undefined) throw error
      // A context that has failed has ended its work: what NCCL makes of it is for NCCL to say.
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

  /** For the watchdog: the communicator ends now. */
  #abortNow(failure: Failure): Promise<void> {
    this.#state = 'aborted'
    this.live.ended = 'aborted'
    forgetLeak(this.#owner)
    const aborting = this.#abort(failure)
    this.#aborting = aborting
    this.#ending ??= aborting
    // The watchdog tells whoever waits.
    aborting.catch(() => undefined)
    return aborting
  }

  async #abort(failure: Failure): Promise<void> {
    // It may hold operations of this communicator.
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
      // NCCL ends the work at once, and then waits for the end of the graphs.
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

/** Whether the init connects the ranks for operations of all of them. */
function initConnects(): boolean {
  return ncclVersion().value < firstWithRuntimeConnect || process.env['NCCL_RUNTIME_CONNECT'] === '0'
}

/** Whether a promise that never rejects settles within the time an abort has. */
async function endsSoon(ended: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), abortGrace)
  })
  const soon = await Promise.race([ended.then(() => true), late])
  clearTimeout(timer)
  return soon
}
