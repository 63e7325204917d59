import type { CUcontext } from '@shoal/cuda-sys/driver'
import { callInContext, createLane, inNextTurn, type Lane } from '@shoal/ffi'
import { deliverQuiet, holdEventLoop, runQuietly } from '@shoal/ffi/calls'
import { StatusError } from '@shoal/types'
import { isGone } from '../errors.js'
import { processIsEnding, releaseAfterFailure, throwFirst } from '../lifetime.js'
import { addAwaited, awaitReleases, releasesAreAwaited, releasesBlock } from '../releasing.js'
import { u64Of } from '../u64Halves.js'

/** What the queue needs of a context. */
interface ReleasingContext {
  readonly _handle: CUcontext
  readonly disposed: boolean
  _addWait(): void
  _endWait(): void
  _removeChild(count?: number): void
  _releaseCall(call: 'memFree', address: bigint): ReleaseCall
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
  settled: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | undefined
}

/** One release of many pieces of memory, while more can be added. */
interface Frees {
  readonly release: Release
  count: number
}

/** More releases than this are not kept back until the program returns to the event loop. */
const mostUnsent = 64
/** The same of plain memory. */
const mostFrees = 256
/** Queues with releases that are not over. */
const busy = new Set<ReleaseQueue>()

/**
 * The releases of a context that wait for the device. A native thread makes them in order, so that dispose() never
 * blocks the event loop.
 */
export class ReleaseQueue {
  readonly #context: ReleasingContext
  #lane: Lane | undefined
  #unsent: Release[] = []
  readonly #sent = new Set<Release>()
  #frees: Frees | undefined
  /** The addresses of {@link #frees}, but for the first. */
  readonly #words = new BigUint64Array(mostFrees - 1)
  readonly #halves = new Int32Array(this.#words.buffer)
  #willSend = false

  constructor(context: ReleasingContext) {
    this.#context = context
  }

  /**
   * Makes calls that wait for the device, and runs `after` on this thread when they have returned. Errors become
   * warnings, unless somebody waits for the release. If the context is gone already, only `after` runs.
   * @param others contexts besides the one of the queue that must not be reset meanwhile
   */
  add(what: string, calls: readonly ReleaseCall[], after: () => void, others: readonly ReleasingContext[] = []): void {
    if (processIsEnding() || this.#context.disposed) after()
    else if (releasesBlock()) this.#makeNow(what, calls, after)
    else this.#add(what, calls, after, [this.#context, ...others.filter((other) => other !== this.#context)])
  }

  /**
   * Frees plain memory, which counts as a child of the context until then. No record of its own is made, unless
   * somebody waits.
   * @returns false if it was left to {@link add}
   */
  free(low: number, high: number): boolean {
    if (processIsEnding() || this.#context.disposed || releasesBlock() || releasesAreAwaited()) return false
    if (this.#frees === undefined) {
      this.#openFrees(low, high)
      return true
    }
    const at = 2 * (this.#frees.count - 1)
    this.#halves[at] = low
    this.#halves[at + 1] = high
    this.#frees.count += 1
    if (this.#frees.count === mostFrees) this.#send()
    return true
  }

  #openFrees(low: number, high: number): void {
    const context = this.#context
    const call = context._releaseCall('memFree', u64Of({ low, high }))
    const release = this.#begin('A DeviceBuffer', [call], () => context._removeChild(frees.count), [context])
    const frees: Frees = { release, count: 1 }
    this.#frees = frees
    this.#sendSoon()
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
    while (this.#hasMore || this.#sent.size > 0) {
      this.#send()
      if (this.#lane?.waitSync(timeout) === false) return false
      deliverQuiet()
    }
    return true
  }

  get #hasMore(): boolean {
    return this.#unsent.length > 0 || this.#frees !== undefined
  }

  #add(what: string, calls: readonly ReleaseCall[], after: () => void, users: readonly ReleasingContext[]): void {
    const release = this.#begin(what, calls, after, users)
    this.#unsent.push(release)
    if (release.settled !== undefined) queueMicrotask(() => this.#send())
    else if (this.#unsent.length >= mostUnsent) this.#send()
    else this.#sendSoon()
  }

  /** In a turn of its own: with what else is disposed of until then, and without waking the thread so often. */
  #sendSoon(): void {
    if (this.#willSend) return
    this.#willSend = true
    inNextTurn(() => {
      this.#willSend = false
      this.#send()
    })
  }

  #begin(what: string, calls: readonly ReleaseCall[], after: () => void, users: readonly ReleasingContext[]): Release {
    const release: Release = { what, calls, users, after, failures: [], made: [], settled: undefined }
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
    // What the thread has done by now need not be kept until the event loop turns.
    if (this.#sent.size > 0) deliverQuiet()
    const [batch, frees, context] = [this.#unsent, this.#frees, this.#context._handle]
    this.#unsent = []
    this.#frees = undefined
    if (batch.length > 0) this.#start(batch, context)
    if (frees !== undefined) this.#start([frees.release], context, frees.count - 1)
  }

  #start(batch: readonly Release[], context: bigint, count = 0): void {
    this.#lane ??= createLane()
    for (const release of batch) this.#sent.add(release)
    // Otherwise the process may end meanwhile, as work that was queued later may go on for long.
    const isPrompt = batch.some(({ settled }) => settled !== undefined)
    const letGo = isPrompt ? holdEventLoop(undefined) : undefined
    const done = (statuses?: readonly number[], error?: Error): void => {
      letGo?.()
      for (const release of batch) this.#sent.delete(release)
      let start = 0
      for (const release of batch) {
        if (error !== undefined && !isOfGoneContext(error)) release.failures.push(error)
        const end = count > 0 ? undefined : start + release.made.length
        this.#finish(release, statuses?.slice(start, end))
        start += release.made.length
      }
      if (this.#sent.size === 0 && !this.#hasMore) forgetBusy(this)
    }
    const repeats = count > 0 ? { words: this.#words, count } : undefined
    const record = (): void => {
      for (const release of batch) recordCalls(release)
    }
    if (runQuietly({ lane: this.#lane, context, isPrompt, repeats }, record, done)) return
    // Without another thread this one has to wait for the device.
    for (const release of batch) release.failures.push(...failuresOf(this.#context, release.calls))
    const others = [...this.#words.subarray(0, count)].map((address) => this.#context._releaseCall('memFree', address))
    batch[0]?.failures.push(...failuresOf(this.#context, others))
    done()
  }

  /** The calls have returned. */
  #finish(release: Release, statuses: readonly number[] = []): void {
    const { what, users, after, made, failures, settled } = release
    const attempt = attempting(failures)
    for (const [index, status] of statuses.entries()) attempt(() => (made[index] ?? made[0])?.check(status))
    const followUp = settled === undefined ? attempt(after) : awaitReleases(after)
    for (const user of users) attempt(() => user._endWait())
    if (settled === undefined) releaseAfterFailure(what, () => throwFirst(what, failures))
    else {
      attemptAll(what, failures.slice(1))
      Promise.resolve(followUp).then(
        () => (failures.length === 0 ? settled.resolve() : settled.reject(failures[0])),
        settled.reject,
      )
    }
  }

  #makeNow(what: string, calls: readonly ReleaseCall[], after: () => void): void {
    this.finishSync()
    const failures = failuresOf(this.#context, calls)
    attempting(failures)(after)
    throwFirst(what, failures)
  }
}

function recordCalls(release: Release): void {
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
 * Blocks until the releases of all contexts of this thread are over: memory that was disposed of can be allocated
 * again.
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
