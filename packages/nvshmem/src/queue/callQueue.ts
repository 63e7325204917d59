import { keepWhile } from '@shoal/driver/basics'
import {
  type BackgroundWork,
  type CallResult,
  callInContext,
  createLane,
  enterContext,
  type Lane,
  leaveContext,
  type NativeMemory,
} from '@shoal/ffi'
import { callOffThread, holdEventLoop } from '@shoal/ffi/calls'
import {
  AbortedError,
  BusyError,
  DisposedError,
  doneNow,
  memoryProtocol,
  requireWaitOptions,
  settledNow,
  streamProtocol,
  TimeoutError,
  type WaitOptions,
} from '@shoal/types'
import { SessionStuckError } from '../errors.js'
import { enterNvshmem, leaveNvshmem, staysInNvshmem } from './processEnd.js'

/** Options of a queued call. */
export interface CallOptions {
  readonly wait?: WaitOptions | undefined
  /** Objects to keep reachable and allocated until the call has returned. */
  readonly keep?: readonly object[] | undefined
  /** Operands of the call. Memory and streams of other owners may be disposed of while it waits for its turn. */
  readonly operands?: readonly unknown[] | undefined
  /** Work to await before the call. The call keeps its turn, and later calls wait too. */
  readonly after?: Promise<unknown> | undefined
}

interface Entry {
  readonly operation: string
  readonly keep: readonly object[]
  readonly operands: readonly object[]
  /** Whether it does not wait and runs on the JavaScript thread. */
  readonly isBrief?: boolean
  /** Memory to free after the call was handed to the thread. */
  readonly toFree: NativeMemory[]
  /** Whether the work of `after` has completed. */
  isReady: boolean
  begin(): void
  giveUp: ((error: unknown) => void) | undefined
}

const none: readonly object[] = []

/** Marks objects whose own disposal goes through this queue, so they outlive earlier calls. */
export const freedInTurn: unique symbol = Symbol('freed in turn')

/** True if the owner of an operand may dispose of it at any time. */
function mayGo(operand: unknown): operand is object {
  return typeof operand === 'object' && operand !== null && !(freedInTurn in operand)
}

/** Returns the wait options of a call's options. */
export function waitOf({ timeout, signal }: WaitOptions): WaitOptions {
  return { timeout, signal }
}

/**
 * The session's thread and the order of its calls.
 *
 * NVSHMEM takes one call at a time. So each call runs on the session's thread, one after another, or on the JavaScript
 * thread while no call is in progress. There are four kinds: {@link run} for calls that wait, {@link start} for calls
 * that only start or queue work, {@link ask} for look-ups, {@link callSync} for calls that block.
 */
export class CallQueue {
  readonly #lane: Lane = createLane()
  readonly #context: bigint
  /** Calls that have not returned, in order. */
  readonly #entries = new Set<Entry>()
  /** The last of these calls, which were not handed to the thread yet. */
  readonly #waiting = new Set<Entry>()
  readonly #limit: number | undefined
  #aborted: { readonly reason: unknown } | undefined
  #stuck: { readonly entry: Entry; readonly cause: unknown } | undefined
  #removeListener: (() => void) | undefined
  /** Lets the process end. It is held while a caller waits for a call that has not started. */
  #release: (() => void) | undefined
  #closed: string | undefined
  #isAbandoned = false

  /** @param defaults default timeout, and a signal for all calls. */
  constructor(context: bigint, defaults: WaitOptions = {}) {
    this.#context = context
    this.#limit = defaults.timeout
    const { signal } = defaults
    if (signal === undefined) return
    const onAbort = (): void => {
      this.#aborted = { reason: signal.reason }
      const [running] = this.#entries
      if (running !== undefined && !this.#waiting.has(running)) {
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

  /** The call in progress; undefined if there is none. */
  get underWay(): string | undefined {
    for (const entry of this.#entries) return entry.operation
    return undefined
  }

  /** The cancelled call that has not returned. */
  get stuckIn(): string | undefined {
    return this.#stuck?.entry.operation
  }

  /** Whether a new call would be made, now or in its turn. */
  get takesCalls(): boolean {
    return this.#stuck === undefined && this.#aborted === undefined && this.#closed === undefined
  }

  /** Whether a call could run on this thread immediately. */
  get idle(): boolean {
    return this.#entries.size === 0 && this.#closed === undefined && this.#aborted === undefined
  }

  /** Makes the next call of this thread, and only that one, in the session's context. Requires {@link idle}. */
  enter(): void {
    callInContext(this.#context)
  }

  /** Returns the error for a call that would not be made; undefined if it would, now or in its turn. */
  refusal(operation: string, wait?: WaitOptions): Error | undefined {
    try {
      this.#requireCallable(operation)
      requireWaitOptions(wait, operation)
    } catch (error) {
      return error as Error
    }
    return undefined
  }

  /**
   * Runs calls of sys packages on the session's thread, after earlier calls. Returns their results.
   *
   * If an operand is disposed of before the call's turn, the call is not made and the promise rejects with
   * DisposedError.
   */
  run(operation: string, record: () => unknown, options: CallOptions = {}): Promise<CallResult[]> {
    const { wait = {}, keep = none, after } = options
    const operands = options.operands?.filter(mayGo) ?? none
    const refusal = this.refusal(operation, wait)
    // The owner of an operand may make `after` reject, and no handler may be attached.
    after?.catch(() => undefined)
    if (refusal !== undefined) return Promise.reject(refusal)
    const { signal, timeout = this.#limit } = wait
    return new Promise((resolve, reject) => {
      const background: BackgroundWork = {}
      let timer: NodeJS.Timeout | undefined
      const settle = (): void => {
        entry.giveUp = undefined
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      const returned = (): void => {
        this.#returned(entry)
        settle()
      }
      const begin = (): void => {
        let isMade = false
        const results = callOffThread(
          {
            context: this.#context,
            lane: this.#lane,
            keep: operands.length === 0 ? keep : [...keep, ...operands],
            background,
            stopOnError: false,
            results: 'value',
          },
          () => {
            for (const operand of operands) requireThere(operand, operation)
            isMade = true
            return record()
          },
        )
        // From now on, an operand that is disposed of is freed after the call has returned.
        if (isMade) keepWhile(operands, results, background)
        // The thread now keeps the memory.
        for (const memory of entry.toFree) memory.dispose()
        // A call that was cancelled earlier does not keep the process alive.
        if (entry.giveUp === undefined) background.release?.()
        results.then(
          (values) => {
            returned()
            resolve(values)
          },
          (error: unknown) => {
            returned()
            reject(error)
          },
        )
      }
      const giveUp = (error: unknown): void => {
        settle()
        background.release?.()
        this.#holdForWaiting()
        reject(error)
      }
      const isReady = after === undefined
      const entry: Entry = { operation, keep, operands, toFree: [], isReady, begin, giveUp }
      const onAbort = (): void => this.#giveUp(entry, aborted(operation, signal?.reason))
      signal?.addEventListener('abort', onAbort, { once: true })
      if (timeout !== undefined) {
        timer = setTimeout(() => this.#giveUp(entry, new TimeoutError({ operation, timeout })), timeout)
      }
      this.#entries.add(entry)
      this.#waiting.add(entry)
      if (this.#entries.size === 1) enterNvshmem(this)
      after?.then(
        () => {
          entry.isReady = true
          this.#beginWaiting()
        },
        (error: unknown) => {
          this.#waiting.delete(entry)
          for (const memory of entry.toFree) memory.dispose()
          returned()
          reject(error)
        },
      )
      this.#beginWaiting()
    })
  }

  /**
   * Makes a call that only starts or queues work.
   *
   * It returns nothing, or a status for `check`.
   *
   * It runs on this thread immediately if no other call is in progress, otherwise in its turn. The promise settles when
   * the call was made.
   */
  start(
    operation: string,
    call: () => unknown,
    operands?: readonly unknown[],
    check?: (status: unknown) => void,
  ): Promise<void> {
    if (!this.idle) return this.#startInTurn(operation, call, operands?.filter(mayGo) ?? none, check)
    this.enter()
    const status = call()
    check?.(status)
    return doneNow()
  }

  /** Runs on this thread too, so nothing can be disposed of between the check of the operands and the call. */
  #startInTurn(
    operation: string,
    call: () => unknown,
    operands: readonly object[],
    check: ((status: unknown) => void) | undefined,
  ): Promise<void> {
    const refusal = this.refusal(operation)
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const begin = (): void => {
        clearTimeout(timer)
        entry.giveUp = undefined
        this.#entries.delete(entry)
        try {
          for (const operand of operands) requireThere(operand, operation)
          this.enter()
          const status = call()
          check?.(status)
          resolve()
        } catch (error) {
          reject(error)
        }
      }
      const giveUp = (error: unknown): void => {
        clearTimeout(timer)
        entry.giveUp = undefined
        this.#holdForWaiting()
        reject(error)
      }
      const entry: Entry = { operation, keep: none, operands, isBrief: true, isReady: true, toFree: [], begin, giveUp }
      const timeout = this.#limit
      if (timeout !== undefined) {
        timer = setTimeout(() => this.#giveUp(entry, new TimeoutError({ operation, timeout })), timeout)
      }
      this.#entries.add(entry)
      this.#waiting.add(entry)
      this.#beginWaiting()
    })
  }

  /**
   * Makes a look-up call.
   *
   * It runs on this thread immediately if no other call is in progress, even after the signal of the session has fired.
   * Otherwise it runs in its turn.
   */
  async ask(operation: string, call: () => unknown): Promise<CallResult> {
    if (this.#entries.size === 0 && this.#closed === undefined) return settledNow(this.inContext(call) as CallResult)
    const [result] = await this.run(operation, call)
    return result
  }

  /**
   * Makes one call on this thread and blocks until it has returned.
   *
   * @param isBrief - for a call that waits for no other PE. Such a call is allowed after the signal of the session has
   * fired; other calls are refused, because nothing could end their wait.
   * @throws BusyError, SessionStuckError when another call is in progress; AbortedError
   */
  callSync<T>(operation: string, call: () => T, isBrief = false): T {
    if (isBrief) this.#requireOpen(operation)
    else this.#requireCallable(operation)
    const { underWay } = this
    if (underWay !== undefined) throw new BusyError({ object: 'NVSHMEM session', api: operation, underWay })
    this.enter()
    return call()
  }

  /** Makes calls of other libraries on this thread. */
  inContext<T>(call: () => T): T {
    const previous = enterContext(this.#context)
    try {
      return call()
    } finally {
      leaveContext(previous)
    }
  }

  /** Frees memory of a call, immediately or after the thread has taken over the waiting call. */
  free(memory: NativeMemory): void {
    for (const entry of this.#waiting) {
      if (!entry.keep.includes(memory)) continue
      entry.toFree.push(memory)
      return
    }
    memory.dispose()
  }

  /** Ends the thread after its queued calls; later calls throw DisposedError. */
  close(why: string): void {
    if (this.#closed !== undefined) return
    this.#closed = why
    this.#removeListener?.()
    if (this.#waiting.size === 0) this.#lane.dispose()
  }

  /**
   * Like {@link close}, for a session whose other PEs may be gone.
   *
   * Calls that still wait for their turn are not made. NVSHMEM's state does not delay the end of the process.
   */
  abandon(why: string): void {
    this.#isAbandoned = true
    staysInNvshmem(this)
    for (const entry of this.#waiting) {
      this.#entries.delete(entry)
      for (const memory of entry.toFree) memory.dispose()
    }
    this.#waiting.clear()
    this.#holdForWaiting()
    this.close(why)
  }

  /** Cancels all calls that are in progress or wait for their turn. */
  giveUpAll(error: (operation: string) => unknown): void {
    for (const entry of [...this.#entries]) entry.giveUp?.(error(entry.operation))
  }

  /**
   * Hands waiting calls to the thread, in order.
   *
   * Calls without operands go immediately. Calls with operands, calls that are not ready, and all calls after them
   * wait.
   */
  #beginWaiting(): void {
    for (const entry of this.#waiting) {
      if (!entry.isReady) break
      const hasToWait = entry.isBrief === true || entry.operands.length > 0
      if (hasToWait && this.#entries.values().next().value !== entry) break
      this.#waiting.delete(entry)
      entry.begin()
    }
    this.#holdForWaiting()
    if (this.#closed !== undefined && this.#waiting.size === 0) this.#lane.dispose()
  }

  /** Keeps the process alive while a caller waits; a cancelled call in progress would not do so. */
  #holdForWaiting(): void {
    if (this.#waiting.size === 0 && this.#release === undefined) return
    for (const { giveUp } of this.#waiting) {
      if (giveUp === undefined) continue
      this.#release ??= holdEventLoop(undefined)
      return
    }
    this.#release?.()
    this.#release = undefined
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
    const isRunning = this.#entries.values().next().value === entry && !this.#waiting.has(entry)
    entry.giveUp?.(error)
    // A call that has not started blocks no other call: it runs in its turn without a waiting caller.
    if (!isRunning) return
    this.#stuck = { entry, cause: error }
    staysInNvshmem(this)
    for (const waiting of [...this.#entries]) {
      waiting.giveUp?.(this.#stuckError(waiting.operation))
    }
  }

  #returned(entry: Entry): void {
    this.#entries.delete(entry)
    if (this.#stuck?.entry === entry) this.#stuck = undefined
    this.#beginWaiting()
    if (this.#entries.size === 0 && !this.#isAbandoned) leaveNvshmem(this)
  }
}

/** Reads the protocol answers of memory and streams, which throw after disposal. */
function requireThere(operand: object, operation: string): void {
  try {
    void (operand as { [memoryProtocol]?: unknown })[memoryProtocol]
    void (operand as { [streamProtocol]?: unknown })[streamProtocol]
  } catch (cause) {
    throw cause instanceof DisposedError ? new DisposedError({ object: cause.object, operation, cause }) : cause
  }
}

function aborted(operation: string, reason: unknown): AbortedError {
  return new AbortedError({ operation, cause: reason })
}
