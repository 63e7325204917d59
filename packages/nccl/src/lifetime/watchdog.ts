import { type BackgroundWork, onAbort } from '@shoal/ffi'
import { ncclResult_t } from '@shoal/nccl-sys'
import { StatusError, settleInTime, TimeoutError } from '@shoal/types'
import { attachSuppressed } from '../attach.js'
import {
  type AbortReason,
  apiName,
  CommunicatorAbortedError,
  type CommunicatorIdentity,
  lostRanksIn,
} from './communicatorErrors.js'
import type { CommunicatorWaitOptions } from './waitOptions.js'

/** What the watchdog watches. */
export interface Watched extends CommunicatorIdentity {
  /** The operation that was last queued. */
  readonly lastOperation?: string | undefined
  /** Status of `ncclCommGetAsyncError`, `ncclInProgress` where it may not be asked now. */
  readonly status: () => number
  /** The error for such a status. */
  readonly errorOf: (status: number) => Error
  /** Aborts the communicator; settles when NCCL has done so, or will not. */
  readonly abort: (failure: Failure) => Promise<void>
}

/** Why a communicator ended before its time. */
export interface Failure {
  readonly reason: AbortReason
  readonly cause?: unknown
}

interface Wait {
  readonly operation: string
  readonly reject: (error: Error) => void
  /** What it waits for is being ended, so it must not resolve. */
  isInterrupted: boolean
}

/** How often NCCL is asked for lost ranks while something waits. */
const watchInterval = 100
/** How long waits go on for the end of an abort, so that the work they waited for has ended when they reject. */
const abortGrace = 2000

/**
 * Ends the waits of one communicator when a signal fires, a time limit passes or NCCL reports an error: aborts the
 * communicator, then rejects all of them. Without this they would never settle, or settle as if all were well.
 */
export class Watchdog {
  readonly #watched: Watched
  readonly #waits = new Set<Wait>()
  #interval: NodeJS.Timeout | undefined
  #failure: Failure | undefined
  #unwatch: (() => void)[] = []
  readonly #failing = new AbortController()

  constructor(watched: Watched) {
    this.#watched = watched
  }

  get failure(): Failure | undefined {
    return this.#failure
  }

  /** Fires at the failure: ends what the package itself waits for. */
  get failing(): AbortSignal {
    return this.#failing.signal
  }

  /** Aborts the communicator when `signal` fires, whether something waits or not. */
  watchSignal(signal: AbortSignal): void {
    // A signal may outlive many communicators, and does not keep them.
    const self = new WeakRef(this)
    this.#unwatch.push(
      onAbort(signal, () => {
        self.deref()?.fail({ reason: 'signal', cause: signal.reason })
      }),
    )
  }

  /** The communicator is gone: nothing is watched any more. */
  stop(): void {
    for (const unwatch of this.#unwatch.splice(0)) unwatch()
    clearInterval(this.#interval)
    this.#interval = undefined
  }

  /**
   * The promise of `work`, but one that rejects when the communicator fails meanwhile. `background` is filled by work
   * on a native thread, which then no longer keeps the process alive. `drop` gets what comes of the work all the same.
   */
  guard<T>(
    operation: string,
    { signal, timeout }: CommunicatorWaitOptions,
    work: (background: BackgroundWork) => Promise<T>,
    drop?: (value: T) => void,
  ): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#errorOf(operation, this.#failure))
    return new Promise<T>((resolve, reject) => {
      const background: BackgroundWork = {}
      let timer: NodeJS.Timeout | undefined
      let unsubscribe = (): void => undefined
      const end = (): boolean => {
        clearTimeout(timer)
        unsubscribe()
        return this.#remove(wait)
      }
      const wait: Wait = {
        operation,
        isInterrupted: false,
        reject: (error) => {
          if (!end()) return
          background.release?.()
          reject(error)
        },
      }
      this.#add(wait)
      unsubscribe = onAbort(signal, () => this.fail({ reason: 'signal', cause: signal?.reason }))
      if (timeout !== undefined && this.#failure === undefined) {
        timer = setTimeout(() => {
          this.fail({ reason: 'timeout', cause: new TimeoutError({ operation: apiName(operation), timeout }) })
        }, timeout)
      }
      // After a failure the wait is rejected by that, once the abort has ended, and never resolves.
      work(background).then(
        (value) => {
          if (this.#failure === undefined && !wait.isInterrupted) this.#look()
          if (this.#failure === undefined && !wait.isInterrupted && end()) settleInTime(() => resolve(value))
          else drop?.(value)
        },
        (error: unknown) => {
          if (this.#failure !== undefined || wait.isInterrupted) return
          if (isFatal(error)) this.fail({ reason: 'async-error', cause: error })
          else if (end()) reject(error)
        },
      )
    })
  }

  /** The communicator cannot go on: aborts it and rejects all waits. Only the first call counts. */
  fail(failure: Failure): void {
    if (this.#failure !== undefined) return
    this.#failure = failure
    this.stop()
    // Without the cause, which may be any object of the program's: whoever waits is told by `rejectAll`.
    this.#failing.abort()
    const aborted = this.#watched.abort(failure)
    let grace: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      grace = setTimeout(resolve, abortGrace)
    })
    const rejectAll = (suppressed?: unknown): void => {
      clearTimeout(grace)
      const waits = [...this.#waits]
      if (suppressed !== undefined && waits.length === 0 && failure.reason !== 'abort') {
        process.emitWarning(`a communicator could not be aborted: ${String(suppressed)}`, 'ShoalWarning')
      }
      for (const wait of waits) {
        const error = this.#errorOf(wait.operation, failure)
        if (suppressed !== undefined) attachSuppressed(error, suppressed)
        wait.reject(error)
      }
    }
    Promise.race([aborted, late]).then(() => rejectAll(), rejectAll)
  }

  /**
   * What is under way is going to be ended although the communicator lives on: the waits for it resolve no more, and
   * the function returned rejects them. `except` is what ends it.
   */
  interrupt(except: string): () => void {
    const interrupted = [...this.#waits].filter(({ operation }) => operation !== except)
    for (const wait of interrupted) wait.isInterrupted = true
    const rejectAll = (): void => {
      clearTimeout(grace)
      for (const wait of interrupted) wait.reject(this.#errorOf(wait.operation, { reason: 'revoke' }))
    }
    const grace = setTimeout(rejectAll, abortGrace)
    return rejectAll
  }

  /** The error of a call that comes after the failure. */
  refusal(operation: string): Error | undefined {
    return this.#failure === undefined ? undefined : this.#errorOf(operation, this.#failure)
  }

  #errorOf(operation: string, { reason, cause }: Failure): CommunicatorAbortedError {
    const { rank, worldSize, deviceOrdinal, lastOperation } = this.#watched
    const lostRanks = lostRanksIn(cause)
    return new CommunicatorAbortedError({
      operation,
      reason,
      rank,
      worldSize,
      deviceOrdinal,
      lastOperation,
      lostRanks,
      cause,
    })
  }

  #add(wait: Wait): void {
    this.#waits.add(wait)
    this.#interval ??= setInterval(() => this.#look(), watchInterval).unref()
  }

  #remove(wait: Wait): boolean {
    const wasThere = this.#waits.delete(wait)
    if (this.#waits.size === 0) {
      clearInterval(this.#interval)
      this.#interval = undefined
    }
    return wasThere
  }

  /** Asks NCCL whether a rank is lost. */
  #look(): void {
    let error: unknown
    try {
      const status = this.#watched.status()
      if (status === ncclResult_t.ncclSuccess || status === ncclResult_t.ncclInProgress) return
      error = this.#watched.errorOf(status)
    } catch (refusal) {
      error = refusal
    }
    this.fail({ reason: 'async-error', cause: error })
  }
}

/** Whether NCCL said that the communicator is lost. */
export function isFatal(error: unknown): boolean {
  return error instanceof StatusError && error.library === 'NCCL' && error.isSticky
}
