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

/** What a call in its turn needs. */
export interface CallOptions {
  readonly wait?: WaitOptions | undefined
  /** What must stay reachable, and allocated, until the call has returned. */
  readonly keep?: readonly object[] | undefined
  /** What the call works with. Memory and streams of others may be disposed of while it waits for its turn. */
  readonly operands?: readonly unknown[] | undefined
  /** What has to be over before the call is made: it has its turn all the same, and the calls behind it wait. */
  readonly after?: Promise<unknown> | undefined
}

interface Entry {
  readonly operation: string
  readonly keep: readonly object[]
  readonly operands: readonly object[]
  /** Whether it waits for nothing and is made on the JavaScript thread. */
  readonly isBrief?: boolean
  /** Memory to free once the call has been handed to the thread. */
  readonly toFree: NativeMemory[]
  /** Whether what has to be over before is over. */
  isReady: boolean
  begin(): void
  giveUp: ((error: unknown) => void) | undefined
}

const none: readonly object[] = []

/**
 * Key of a property that says that an object is given back in turn itself, and so is there when a call before has its
 * turn.
 */
export const freedInTurn: unique symbol = Symbol('freed in turn')

/** Whether the owner of an operand may dispose of it at any time. */
function mayGo(operand: unknown): operand is object {
  return typeof operand === 'object' && operand !== null && !(freedInTurn in operand)
}

/** The options of a wait among those of a call. */
export function waitOf({ timeout, signal }: WaitOptions): WaitOptions {
  return { timeout, signal }
}

/**
 * The thread that owns the session, and the order of calls. NVSHMEM takes one call at a time, so every call either runs
 * on that thread, one after the other, or on the JavaScript thread at a moment when none is under way. There are four
 * kinds: {@link run} for what waits, {@link start} for what only starts or queues something, {@link ask} for look-ups,
 * {@link callSync} for what blocks.
 */
export class CallQueue {
  readonly #lane: Lane = createLane()
  readonly #context: bigint
  /** Calls that have not returned, in their order. */
  readonly #entries = new Set<Entry>()
  /** Those of them that the thread does not know of yet: the last ones. */
  readonly #waiting = new Set<Entry>()
  readonly #limit: number | undefined
  #aborted: { readonly reason: unknown } | undefined
  #stuck: { readonly entry: Entry; readonly cause: unknown } | undefined
  #removeListener: (() => void) | undefined
  /** Lets the process end: it is kept alive while somebody waits for a call that has not begun. */
  #release: (() => void) | undefined
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

  /**
   * The next call of this thread, and only that one, is made in the session's context. Only where it is {@link idle}.
   */
  enter(): void {
    callInContext(this.#context)
  }

  /** Why a call would not be made at all, as the error that says so; undefined when it would, now or in its turn. */
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
   * Runs calls of sys packages on the session's thread, after those before; gives what each of them returned. A call
   * whose operands are gone when its turn comes is not made: the promise rejects with DisposedError.
   */
  run(operation: string, record: () => unknown, options: CallOptions = {}): Promise<CallResult[]> {
    const { wait = {}, keep = none, after } = options
    const operands = options.operands?.filter(mayGo) ?? none
    const refusal = this.refusal(operation, wait)
    // Whoever frees what it works with may make it fail, with nobody left to hear of it.
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
        // Who disposes of them from now on has them given back once the call has returned.
        if (isMade) keepWhile(operands, results, background)
        // The thread has a hold on it now.
        for (const memory of entry.toFree) memory.dispose()
        // A call that was given up before does not keep the process alive.
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
   * A call that only starts or queues something, and returns a status for `check`, or nothing: at once on this thread
   * when no other call is under way, otherwise in its turn. The promise settles when it has been made.
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

  /** On this thread as well: nothing can be disposed of between the last look at the operands and the call. */
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
   * A call that only looks something up: at once on this thread when no other call is under way, also once the signal
   * of the session has fired; otherwise in its turn.
   */
  async ask(operation: string, call: () => unknown): Promise<CallResult> {
    if (this.#entries.size === 0 && this.#closed === undefined) return settledNow(this.inContext(call) as CallResult)
    const [result] = await this.run(operation, call)
    return result
  }

  /**
   * Makes one call on this thread and blocks it until that has returned.
   *
   * @param isBrief - for a call that waits for no other PE: it is made also once the signal of the session has fired,
   * which is refused to others because nothing could end the wait.
   * @throws BusyError, SessionStuckError when another call is under way; AbortedError
   */
  callSync<T>(operation: string, call: () => T, isBrief = false): T {
    if (isBrief) this.#requireOpen(operation)
    else this.#requireCallable(operation)
    const { underWay } = this
    if (underWay !== undefined) throw new BusyError({ object: 'NVSHMEM session', api: operation, underWay })
    this.enter()
    return call()
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

  /** Frees memory of a call: at once, or when the thread has taken over a call that still waits for its turn. */
  free(memory: NativeMemory): void {
    for (const entry of this.#waiting) {
      if (!entry.keep.includes(memory)) continue
      entry.toFree.push(memory)
      return
    }
    memory.dispose()
  }

  /** Ends the thread after what is queued; calls that come later throw DisposedError. */
  close(why: string): void {
    if (this.#closed !== undefined) return
    this.#closed = why
    this.#removeListener?.()
    if (this.#waiting.size === 0) this.#lane.dispose()
  }

  /**
   * {@link close} for a session whose other PEs may be gone: calls that still wait for their turn are not made, and
   * what NVSHMEM left behind does not hold up the end of the process.
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

  /** Gives up everything that is under way or waits for its turn. */
  giveUpAll(error: (operation: string) => unknown): void {
    for (const entry of [...this.#entries]) entry.giveUp?.(error(entry.operation))
  }

  /**
   * Calls without operands go to the thread at once, which keeps their order; those with operands, those that are not
   * ready, and what is behind, wait.
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

  /**
   * The process stays alive while somebody waits: what is under way before may have been given up, and does not keep it
   * so.
   */
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
    // A call that had not begun blocks no other: it will run in its turn, without a caller that waits.
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

/** Reads what memory and streams offer, which throws once they are gone. */
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
