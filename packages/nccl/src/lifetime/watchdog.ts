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

/** A watched communicator. */
export interface Watched extends CommunicatorIdentity {
  /** The last queued operation. */
  readonly lastOperation?: string | undefined
  /** Returns the status of `ncclCommGetAsyncError`, or `ncclInProgress` if that must not be called now. */
  readonly status: () => number
  /** Returns the error for such a status. */
  readonly errorOf: (status: number) => Error
  /** Aborts the communicator; settles when NCCL has finished, or never will. */
  readonly abort: (failure: Failure) => Promise<void>
}

/** Why a communicator ended early. */
export interface Failure {
  readonly reason: AbortReason
  readonly cause?: unknown
}

interface Wait {
  readonly operation: string
  readonly reject: (error: Error) => void
  /** Whether its operation is being ended, so that it must not resolve. */
  isInterrupted: boolean
}

/** Milliseconds between two checks for lost ranks during a wait. */
const watchInterval = 100
/** Milliseconds for which waits await an abort, so that their work has ended when they reject. */
const abortGrace = 2000

/**
 * Ends a communicator's waits on a signal, a timeout or an error of NCCL.
 *
 * It aborts the communicator, then rejects all waits. Otherwise they would never settle, or settle as if there were no
 * error.
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

  /** Fires at the failure and ends internal waits of the package. */
  get failing(): AbortSignal {
    return this.#failing.signal
  }

  /** Aborts the communicator when `signal` fires, with or without a wait. */
  watchSignal(signal: AbortSignal): void {
    // A weak reference, because a signal may outlive many communicators.
    const self = new WeakRef(this)
    this.#unwatch.push(
      onAbort(signal, () => {
        self.deref()?.fail({ reason: 'signal', cause: signal.reason })
      }),
    )
  }

  /** Stops watching a communicator that has ended. */
  stop(): void {
    for (const unwatch of this.#unwatch.splice(0)) unwatch()
    clearInterval(this.#interval)
    this.#interval = undefined
  }

  /**
   * Wraps `work` in a promise that also rejects when the communicator fails.
   *
   * Work on a native thread fills `background`, so that cancelled work does not keep the process alive. `drop` gets a
   * result that arrives too late.
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
      // After a failure the wait never resolves; the failure rejects it when the abort has ended.
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

  /** Aborts the failed communicator and rejects all waits. Only the first call counts. */
  fail(failure: Failure): void {
    if (this.#failure !== undefined) return
    this.#failure = failure
    this.stop()
    // Without the cause, which may be any object of the program; `rejectAll` reports it.
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
   * Ends the waits for work in flight, while the communicator stays usable.
   *
   * They no longer resolve, and the returned function rejects them. `except` is the operation that ends the work.
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

  /** Returns the error of a call after the failure. */
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

  /** Checks NCCL's status for a lost rank. */
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

/** True if NCCL reported that the communicator is lost. */
export function isFatal(error: unknown): boolean {
  return error instanceof StatusError && error.library === 'NCCL' && error.isSticky
}
