import { AbortedError, TimeoutError } from '@shoal/types'
import { onAbort } from '../waiting/abortSignals.js'
import { holdEventLoop } from '../waiting/hold.js'
import type { WaitOptions } from '../waiting/waitOptions.js'

/** A wait whose limit is counted from the call, through its turn and every part of what it waits for. */
export interface LimitedWait extends WaitOptions {
  /** When the limit is over, on the clock of `performance.now()`. */
  readonly end: number | undefined
}

/** Starts to count the limit of a wait. */
export function limitedFromNow(wait: WaitOptions): LimitedWait {
  return { ...wait, end: wait.timeout === undefined ? undefined : performance.now() + wait.timeout }
}

/** The options of a wait for what is left of its limit. */
export function restOf({ background, signal, end }: LimitedWait): WaitOptions {
  return { background, signal, timeout: end === undefined ? undefined : Math.max(end - performance.now(), 0) }
}

/**
 * Runs one after the other what is asked of one direction of a socket. A call whose limit is over before its turn is
 * left out.
 */
export class Turns {
  #last: Promise<void> | undefined

  /** @param what what is waited for, in errors. @throws AbortedError, TimeoutError; what `work` throws */
  async run<T>(wait: LimitedWait, what: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last
    let finish = (): void => undefined
    const own = new Promise<void>((resolve) => {
      finish = resolve
    })
    // Whoever comes behind a call that was left out still waits for those before it.
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
    // The call whose turn it is may have let go of the event loop.
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
