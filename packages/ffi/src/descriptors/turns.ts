import { AbortedError, TimeoutError } from '@shoal/types'
import { onAbort } from '../waiting/abortSignals.js'
import { holdEventLoop } from '../waiting/hold.js'
import type { WaitOptions } from '../waiting/waitOptions.js'

/** A wait whose limit counts from the call, and includes its turn and all its parts. */
export interface LimitedWait extends WaitOptions {
  /** End of the limit, by `performance.now()`. */
  readonly end: number | undefined
}

/** Starts the limit of a wait. */
export function limitedFromNow(wait: WaitOptions): LimitedWait {
  return { ...wait, end: wait.timeout === undefined ? undefined : performance.now() + wait.timeout }
}

/** Returns wait options for the rest of the limit. */
export function restOf({ background, signal, end }: LimitedWait): WaitOptions {
  return { background, signal, timeout: end === undefined ? undefined : Math.max(end - performance.now(), 0) }
}

/** Runs the calls of one direction of a socket one after another. Skips a call whose limit ends before its turn. */
export class Turns {
  #last: Promise<void> | undefined

  /** @param what the awaited operation, for errors. @throws AbortedError, TimeoutError; errors of `work` */
  async run<T>(wait: LimitedWait, what: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last
    let finish = (): void => undefined
    const own = new Promise<void>((resolve) => {
      finish = resolve
    })
    // Calls after a skipped call still wait for the calls before it.
    const last = before === undefined ? own : before.then(() => own)
    this.#last = last
    void last.then(() => {
      if (this.#last === last) this.#last = undefined
    })
    try {
      if (before !== undefined) await withinLimit(before, wait, what)
      return await work()
    } finally {
      finish()
    }
  }
}

function withinLimit(turn: Promise<void>, wait: LimitedWait, what: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // The running call may have released the event loop.
    const release = wait.background === undefined ? holdEventLoop(undefined) : undefined
    let timer: NodeJS.Timeout | undefined
    let stopListening = (): void => undefined
    const settle = (how: () => void): void => {
      release?.()
      clearTimeout(timer)
      stopListening()
      how()
    }
    const { signal, timeout } = wait
    void turn.then(() => settle(resolve))
    if (timeout !== undefined) {
      timer = setTimeout(
        () => settle(() => reject(new TimeoutError({ operation: what, timeout, ofDevice: false }))),
        timeout,
      )
    }
    stopListening = onAbort(signal, () =>
      settle(() => reject(new AbortedError({ operation: what, ofDevice: false, cause: signal?.reason }))),
    )
  })
}
