import type { CUcontext } from '@shoal/cuda-sys/driver/common'
import { type BackgroundWork, callInContext, createLane, type Lane, offThread } from '@shoal/ffi'
import { holdEventLoop } from '@shoal/ffi/calls'
import { propertyOf, StatusError } from '@shoal/types'
import { isGone } from '../errors.js'
import { processIsEnding, releaseAfterFailure, throwFirst } from '../lifetime.js'
import { addAwaited, awaitReleases, releasesAreAwaited, releasesBlock } from '../releasing.js'

/** What the queue needs of a context. */
interface ReleasingContext {
  readonly _handle: CUcontext
  readonly disposed: boolean
  _addWait(): void
  _endWait(): void
}

/** One call of a release. */
export interface ReleaseCall {
  /** Makes exactly one C call and returns its status. */
  readonly make: () => unknown
  /** @throws StatusError for a status that is to be reported. */
  readonly check: (status: number) => void
  /** The context that is current during the call; null for none. Default: the one of the queue. */
  readonly context?: ReleasingContext | null
}

interface Release {
  readonly what: string
  readonly calls: readonly ReleaseCall[]
  /** Nobody resets these meanwhile. */
  readonly users: readonly ReleasingContext[]
  readonly after: () => void
  readonly failures: unknown[]
  /** The calls that the thread makes. */
  made: readonly ReleaseCall[]
  isOver: boolean
  /** What `after` has started, for somebody who waits. */
  followUp: Promise<void> | undefined
  settled: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | undefined
}

/** More releases than this are not kept back until the program returns to the event loop. */
const mostUnsent = 64
/** Queues with releases that are not over. */
const busy = new Set<ReleaseQueue>()

/**
 * The releases of a context that wait for the device. A native thread makes them in order, so that dispose() never blocks the event loop.
 */
export class ReleaseQueue {
  readonly #context: ReleasingContext
  #lane: Lane | undefined
  #unsent: Release[] = []
  readonly #sent = new Set<Release>()

  constructor(context: ReleasingContext) {
    this.#context = context
  }

  /**
   * Makes calls that wait for the device, and runs `after` on this thread when they have returned. Errors become warnings, unless
   * somebody waits for the release. If the context is gone already, only `after` runs.
   * @param others contexts besides the one of the queue that must not be reset meanwhile
   */
  add(what: string, calls: readonly ReleaseCall[], after: () => void, others: readonly ReleasingContext[] = []): void {
    if (processIsEnding() || this.#context.disposed) after()
    else if (releasesBlock()) this.#makeNow(what, calls, after)
    else this.#add(what, calls, after, [this.#context, ...others.filter((other) => other !== this.#context)])
  }

  /** The last calls of a context that is gone for this thread. `giveUp` ends the context itself. */
  close(what: string, calls: readonly ReleaseCall[], giveUp: ReleaseCall | undefined): void {
    const last = giveUp === undefined ? [] : [giveUp]
    if (releasesBlock()) {
      this.#makeNow(what, [...calls, ...last], () => undefined)
      this.#lane?.dispose()
      return
    }
    if (calls.length > 0) this.#add(what, calls, () => undefined, [])
    this.#send()
    // In no context: one that is being destroyed cannot be current.
    if (giveUp !== undefined) this.#start([this.#begin(what, last, () => undefined, [])], 0n)
    this.#lane?.dispose()
  }

  /**
   * Blocks until all releases are over. Reports of errors follow later.
   * @param timeout in milliseconds
   * @returns whether all are over
   */
  finishSync(timeout?: number): boolean {
    // The end of the last object of a context starts the release of that.
    while (this.#unsent.length > 0 || this.#sent.size > 0) {
      this.#send()
      if (this.#lane?.waitSync(timeout) === false) return false
      for (const release of [...this.#sent]) releaseAfterFailure(release.what, () => this.#end(release))
    }
    return true
  }

  #add(what: string, calls: readonly ReleaseCall[], after: () => void, users: readonly ReleasingContext[]): void {
    const release = this.#begin(what, calls, after, users)
    if (this.#unsent.push(release) === 1) queueMicrotask(() => this.#send())
    if (this.#unsent.length >= mostUnsent) this.#send()
  }

  #begin(what: string, calls: readonly ReleaseCall[], after: () => void, users: readonly ReleasingContext[]): Release {
    const release: Release = {
      what,
      calls,
      users,
      after,
      failures: [],
      made: [],
      isOver: false,
      followUp: undefined,
      settled: undefined,
    }
    for (const user of users) user._addWait()
    busy.add(this)
    if (releasesAreAwaited()) {
      addAwaited(
        new Promise<void>((resolve, reject) => {
          release.settled = { resolve, reject }
        }),
      )
    }
    return release
  }

  #send(): void {
    const batch = this.#unsent
    if (batch.length === 0) return
    this.#unsent = []
    this.#start(batch, this.#context._handle)
  }

  #start(batch: readonly Release[], context: bigint): void {
    this.#lane ??= createLane()
    const lane = this.#lane
    for (const release of batch) this.#sent.add(release)
    const background: BackgroundWork = {}
    const made = offThread({ context, lane, background, stopOnError: false }, () => {
      for (const release of batch) record(release)
    })
    // Nobody waits: the process may end meanwhile, as work that was queued later may go on for long.
    if (batch.every(({ settled }) => settled === undefined)) background.release?.()
    made.then(
      (statuses) => {
        let start = 0
        for (const release of batch) {
          this.#finish(release, statuses.slice(start, start + release.made.length))
          start += release.made.length
        }
      },
      (error: unknown) => {
        for (const release of batch) {
          // Without another thread this one has to wait for the device.
          if (propertyOf(error, 'code') === 'EAGAIN') release.failures.push(...failuresOf(this.#context, release.calls))
          else if (!isOfGoneContext(error)) release.failures.push(error)
          this.#finish(release, [])
        }
      },
    )
  }

  #finish(release: Release, statuses: readonly number[]): void {
    const { what, made, failures, settled } = release
    const attempt = attempting(failures)
    for (const [index, status] of statuses.entries()) attempt(() => made[index]?.check(status))
    attempt(() => this.#end(release))
    if (settled === undefined) releaseAfterFailure(what, () => throwFirst(what, failures))
    else {
      attemptAll(what, failures.slice(1))
      const { followUp = Promise.resolve() } = release
      followUp.then(() => (failures.length === 0 ? settled.resolve() : settled.reject(failures[0])), settled.reject)
    }
  }

  /** The calls have returned. */
  #end(release: Release): void {
    if (release.isOver) return
    release.isOver = true
    this.#sent.delete(release)
    const { what, users, after } = release
    const failures: unknown[] = []
    const attempt = attempting(failures)
    if (release.settled === undefined) attempt(after)
    else release.followUp = awaitReleases(after)
    for (const user of users) attempt(() => user._endWait())
    if (this.#sent.size === 0 && this.#unsent.length === 0) forgetBusy(this)
    throwFirst(what, failures)
  }

  #makeNow(what: string, calls: readonly ReleaseCall[], after: () => void): void {
    this.finishSync()
    const failures = failuresOf(this.#context, calls)
    attempting(failures)(after)
    throwFirst(what, failures)
  }
}

function record(release: Release): void {
  const made: ReleaseCall[] = []
  release.made = made
  for (const call of release.calls) {
    const { make, context } = call
    try {
      if (context) callInContext(context._handle)
      make()
      made.push(call)
    } catch (error) {
      // A function that the library does not have.
      callInContext(0n)
      release.failures.push(error)
    }
  }
}

/** Makes the calls on this thread, whatever fails. */
function failuresOf(own: ReleasingContext, calls: readonly ReleaseCall[]): unknown[] {
  const failures: unknown[] = []
  const attempt = attempting(failures)
  for (const { make, check, context = own } of calls) {
    attempt(() => {
      if (context !== null) callInContext(context._handle)
      try {
        check(make() as number)
      } finally {
        callInContext(0n)
      }
    })
  }
  return failures
}

function attempting(failures: unknown[]): (step: () => void) => void {
  return (step) => {
    try {
      step()
    } catch (error) {
      failures.push(error)
    }
  }
}

function attemptAll(what: string, failures: readonly unknown[]): void {
  for (const failure of failures) {
    releaseAfterFailure(what, () => {
      throw failure
    })
  }
}

function isOfGoneContext(error: unknown): boolean {
  return error instanceof StatusError && isGone(error.status)
}

/**
 * Blocks until the releases of all contexts of this thread are over: memory that was disposed of can be allocated again.
 * @param timeout in milliseconds, for all of them. Default: no limit.
 * @returns whether there were any, and they are over now
 */
export function finishReleasesSync(timeout?: number): boolean {
  const end = timeout === undefined ? undefined : performance.now() + timeout
  const queues = [...busy]
  let areOver = queues.length > 0
  for (const queue of queues) {
    const left = end === undefined ? undefined : Math.max(0, Math.ceil(end - performance.now()))
    areOver = queue.finishSync(left) && areOver
  }
  return areOver
}

const whenNoneBusy: (() => void)[] = []

function forgetBusy(queue: ReleaseQueue): void {
  busy.delete(queue)
  if (busy.size === 0) for (const resolve of whenNoneBusy.splice(0)) resolve()
}

/** Whether releases of contexts of this thread are under way. */
export function hasReleases(): boolean {
  return busy.size > 0
}

/** Resolves when no context of this thread has releases under way. */
export async function whenReleasesEnd(): Promise<void> {
  // The releases themselves do not keep the process alive, but whoever waits for them does.
  const release = holdEventLoop(undefined)
  while (busy.size > 0) await new Promise<void>((resolve) => whenNoneBusy.push(resolve))
  release()
}
