import {
  type BackgroundWork,
  type CallResult,
  callInContext,
  createLane,
  enterContext,
  type Lane,
  leaveContext,
  offThread,
} from '@shoal/ffi'
import { AbortedError, DisposedError, TimeoutError } from '@shoal/types'
import { requireOptions, requireSignal, requireTimeout } from '../checks.js'
import { SessionBusyError, SessionStuckError } from '../errors.js'
import { enterNvshmem, leaveNvshmem, staysInNvshmem } from './processEnd.js'

/** How long to wait for other PEs. */
export interface WaitOptions {
  /** Milliseconds after which the promise rejects with TimeoutError. The call itself goes on, see {@link SessionStuckError}. */
  readonly timeout?: number | undefined
  /** Rejects the promise with AbortedError. The call itself goes on, see {@link SessionStuckError}. */
  readonly signal?: AbortSignal | undefined
}

export interface CallOptions {
  readonly wait?: WaitOptions | undefined
  /** What must stay reachable, and allocated, until the call has returned. */
  readonly keep?: readonly object[] | undefined
}

interface Entry {
  readonly operation: string
  readonly background: BackgroundWork
  giveUp: ((error: unknown) => void) | undefined
}

/** What a call gives that has only started something, and has done so. */
export const started: Promise<void> = Promise.resolve()

/**
 * The thread that owns the session, and the order of calls. NVSHMEM takes one call at a time, so every call either runs
 * on that thread, one after the other, or on the JavaScript thread at a moment when none is under way.
 */
export class CallQueue {
  readonly #lane: Lane = createLane()
  readonly #context: bigint
  readonly #entries = new Set<Entry>()
  readonly #limit: number | undefined
  #aborted: { readonly reason: unknown } | undefined
  #stuck: { readonly entry: Entry; readonly cause: unknown } | undefined
  #removeListener: (() => void) | undefined
  #closed: string | undefined
  #isAbandoned = false

  /** @param defaults holds for calls that name no timeout, and its signal for all calls. */
  constructor(context: bigint, defaults: WaitOptions = {}) {
    this.#context = context
    this.#limit = defaults.timeout
    const { signal } = defaults
    if (signal === undefined) return
    const onAbort = (): void => {
      this.#aborted = { reason: signal.reason }
      const [running] = this.#entries
      if (running !== undefined) {
        this.#stuck ??= { entry: running, cause: aborted(running.operation, signal.reason) }
        staysInNvshmem(this)
      }
      this.giveUpAll((operation) => aborted(operation, signal.reason))
    }
    if (signal.aborted) onAbort()
    else {
      signal.addEventListener('abort', onAbort, { once: true })
      this.#removeListener = () => signal.removeEventListener('abort', onAbort)
    }
  }

  /** What is under way, undefined when nothing is. */
  get underWay(): string | undefined {
    for (const entry of this.#entries) return entry.operation
    return undefined
  }

  /** The call that was given up and has not returned. */
  get stuckIn(): string | undefined {
    return this.#stuck?.entry.operation
  }

  /** Whether a call would be made, now or in its turn. */
  get takesCalls(): boolean {
    return this.#stuck === undefined && this.#aborted === undefined && this.#closed === undefined
  }

  /** Whether a call could run on this thread at once. */
  get idle(): boolean {
    return this.#entries.size === 0 && this.#closed === undefined && this.#aborted === undefined
  }

  /** The next call of this thread, and only that one, is made in the session's context. Only where it is {@link idle}. */
  enter(): void {
    callInContext(this.#context)
  }

  /** Why a call would not be made at all, as the error that says so; undefined when it would, now or in its turn. */
  refusal(operation: string, wait: WaitOptions = {}): Error | undefined {
    try {
      requireOptions(wait, operation, '{ timeout, signal }')
      requireTimeout(wait.timeout, operation)
      requireSignal(wait.signal, operation)
      this.#requireCallable(operation)
    } catch (error) {
      return error as Error
    }
    return wait.signal?.aborted === true ? aborted(operation, wait.signal.reason) : undefined
  }

  /** Runs calls of sys packages on the session's thread, after those before; gives what each of them returned. */
  run(operation: string, record: () => unknown, options: CallOptions = {}): Promise<CallResult[]> {
    const { wait = {} } = options
    const refusal = this.refusal(operation, wait)
    if (refusal !== undefined) return Promise.reject(refusal)
    const { signal } = wait
    const background: BackgroundWork = {}
    const entry: Entry = { operation, background, giveUp: undefined }
    const { keep = [] } = options
    const returned = offThread(
      { context: this.#context, lane: this.#lane, keep, background, stopOnError: false, results: 'value' },
      record,
    )
    this.#entries.add(entry)
    if (this.#entries.size === 1) enterNvshmem(this)
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const settle = (): void => {
        entry.giveUp = undefined
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      entry.giveUp = (error) => {
        settle()
        background.release?.()
        reject(error)
      }
      const onAbort = (): void => this.#giveUp(entry, aborted(operation, signal?.reason))
      returned.then(
        (results) => {
          this.#returned(entry)
          settle()
          resolve(results)
        },
        (error: unknown) => {
          this.#returned(entry)
          settle()
          reject(error)
        },
      )
      signal?.addEventListener('abort', onAbort, { once: true })
      const timeout = wait.timeout ?? this.#limit
      if (timeout !== undefined && timeout < 2 ** 31) {
        timer = setTimeout(() => this.#giveUp(entry, new TimeoutError({ operation, timeout })), timeout)
      }
    })
  }

  /** Like {@link run}, for one call whose result is wanted. */
  async runOne(operation: string, record: () => unknown, options: CallOptions = {}): Promise<CallResult> {
    const [result] = await this.run(operation, record, options)
    return result
  }

  /**
   * A call that only starts or queues something, and returns nothing: at once on this thread when no other call is under
   * way, otherwise in its turn. The promise settles when it has been made.
   */
  start(operation: string, call: () => void, keep?: readonly object[]): Promise<void> {
    if (!this.idle) return this.run(operation, call, { keep }).then(() => undefined)
    this.#callHere(call)
    return started
  }

  /**
   * A call that only looks something up: at once on this thread when no other call is under way, also once the signal of
   * the session has fired; otherwise in its turn.
   */
  ask(operation: string, call: () => unknown): Promise<CallResult> {
    if (this.#entries.size > 0 || this.#closed !== undefined) return this.runOne(operation, call)
    try {
      return Promise.resolve(this.inContext(call) as CallResult)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** The same for a call that returns a status, or nothing, which goes to `check`. */
  startChecked(operation: string, call: () => unknown, check: (status: unknown) => void): Promise<void> {
    if (!this.idle) return this.runOne(operation, call).then(check)
    check(this.#callHere(call))
    return started
  }

  /**
   * Runs calls on this thread and blocks it until they have returned.
   *
   * @throws SessionBusyError, SessionStuckError when another call is under way; AbortedError once the signal of the session
   * has fired: nothing could end the wait.
   */
  runSync<T>(operation: string, call: () => T): T {
    this.#requireCallable(operation)
    return this.runNow(operation, call)
  }

  /** Like {@link runSync}, for a single call of a sys package. */
  callSync<T>(operation: string, call: () => T): T {
    this.#requireCallable(operation)
    this.#requireIdle(operation)
    return this.#callHere(call)
  }

  /** Like {@link runSync}, for a call that waits for nobody: also once the signal of the session has fired. */
  runNow<T>(operation: string, call: () => T): T {
    this.#requireOpen(operation)
    this.#requireIdle(operation)
    return this.inContext(call)
  }

  /** Ends the thread after what is queued; calls that come later throw DisposedError. */
  close(why: string): void {
    if (this.#closed !== undefined) return
    this.#closed = why
    this.#removeListener?.()
    this.#lane.dispose()
  }

  /** {@link close} for a session whose other PEs may be gone: what NVSHMEM left behind does not hold up the process's end. */
  abandon(why: string): void {
    this.#isAbandoned = true
    staysInNvshmem(this)
    this.close(why)
  }

  /** Gives up everything that is under way or waits for its turn. */
  giveUpAll(error: (operation: string) => unknown): void {
    for (const entry of [...this.#entries]) entry.giveUp?.(error(entry.operation))
  }

  /** Makes calls on this thread that are not NVSHMEM's. */
  inContext<T>(call: () => T): T {
    const previous = enterContext(this.#context)
    try {
      return call()
    } finally {
      leaveContext(previous)
    }
  }

  #callHere<T>(call: () => T): T {
    this.enter()
    return call()
  }

  #requireIdle(operation: string): void {
    const { underWay } = this
    if (underWay !== undefined) throw new SessionBusyError(operation, underWay)
  }

  #requireOpen(operation: string): void {
    if (this.#closed !== undefined) throw new DisposedError({ object: this.#closed, operation })
    if (this.#stuck !== undefined) throw this.#stuckError(operation)
  }

  #requireCallable(operation: string): void {
    this.#requireOpen(operation)
    if (this.#aborted !== undefined) throw aborted(operation, this.#aborted.reason)
  }

  #stuckError(operation: string): SessionStuckError {
    return new SessionStuckError(operation, this.#stuck?.entry.operation ?? 'a call', this.#stuck?.cause)
  }

  #giveUp(entry: Entry, error: unknown): void {
    const isRunning = this.#entries.values().next().value === entry
    entry.giveUp?.(error)
    // A call that had not begun holds nothing up: it will run, and nobody waits for it.
    if (!isRunning) return
    this.#stuck = { entry, cause: error }
    staysInNvshmem(this)
    for (const waiting of [...this.#entries]) {
      waiting.giveUp?.(this.#stuckError(waiting.operation))
    }
  }

  #returned(entry: Entry): void {
    this.#entries.delete(entry)
    if (this.#entries.size === 0 && !this.#isAbandoned) leaveNvshmem(this)
    if (this.#stuck?.entry === entry) this.#stuck = undefined
  }
}

function aborted(operation: string, reason: unknown): AbortedError {
  return new AbortedError({ operation, cause: reason })
}
