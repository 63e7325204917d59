import type { CUcontext } from '@shoal/cuda-sys/driver'
import { callInContext, createLane, inNextTurn, type Lane } from '@shoal/ffi'
import { deliverQuiet, holdEventLoop, runQuietly } from '@shoal/ffi/calls'
import { StatusError } from '@shoal/types'
import { isGone } from '../errors.js'
import { processIsEnding, releaseAfterFailure, throwFirst } from '../lifetime.js'
import { addAwaited, awaitReleases, releasesAreAwaited, releasesBlock } from '../releasing.js'
import { u64Of } from '../u64Halves.js'

/** The parts of a context that the release queue needs. */
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
  /** Checks the status. @throws StatusError for a status that must be reported */
  readonly check: (status: number) => void
  /** The context that is current during the call; null for none. Default: the queue's context. */
  readonly context?: ReleasingContext | null
}

interface Release {
  readonly what: string
  readonly calls: readonly ReleaseCall[]
  /** Contexts that must not be reset until the release completes. */
  readonly users: readonly ReleasingContext[]
  readonly after: () => void
  readonly failures: unknown[]
  /** The calls that the native thread makes. */
  made: readonly ReleaseCall[]
  settled: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | undefined
}

/** One release that frees many pieces of memory. More can be added until it is sent. */
interface Frees {
  readonly release: Release
  count: number
}

/** Maximum number of releases that wait for the next turn of the event loop. */
const mostUnsent = 64
/** Maximum number of pieces of ordinary memory that wait for the next turn of the event loop. */
const mostFrees = 256
/** Queues with pending releases. */
const busy = new Set<ReleaseQueue>()

/**
 * The releases of a context that wait for the device. A native thread makes them in order, so dispose() never blocks
 * the event loop.
 */
export class ReleaseQueue {
  readonly #context: ReleasingContext
  #lane: Lane | undefined
  #unsent: Release[] = []
  readonly #sent = new Set<Release>()
  #frees: Frees | undefined
  /** The addresses of {@link #frees}, except for the first. */
  readonly #words = new BigUint64Array(mostFrees - 1)
  readonly #halves = new Int32Array(this.#words.buffer)
  #willSend = false

  constructor(context: ReleasingContext) {
    this.#context = context
  }

  /**
   * Makes calls that wait for the device, then runs `after` on this thread. Errors become warnings unless a caller
   * awaits the release. If the context is already gone, only `after` runs.
   * @param others contexts besides the queue's context that must not be reset until then
   */
  add(what: string, calls: readonly ReleaseCall[], after: () => void, others: readonly ReleasingContext[] = []): void {
    if (processIsEnding() || this.#context.disposed) after()
    else if (releasesBlock()) this.#makeNow(what, calls, after)
    else this.#add(what, calls, after, [this.#context, ...others.filter((other) => other !== this.#context)])
  }

  /**
   * Frees ordinary memory, which counts as a child of the context until it is freed. Creates no record per address,
   * unless a caller awaits the release.
   * @returns false if the caller must use {@link add}
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

  /** Makes the last calls of a context that is gone for this thread. `giveUp` releases the context itself. */
  close(what: string, calls: readonly ReleaseCall[], giveUp: ReleaseCall | undefined): void {
    const last = giveUp === undefined ? [] : [giveUp]
    if (releasesBlock()) {
      this.#makeNow(what, [...calls, ...last], () => undefined)
      this.#lane?.dispose()
      return
    }
    if (calls.length > 0) this.#add(what, calls, () => undefined, [])
    this.#send()
    // A context that is being destroyed cannot be current, so this call runs without a context.
    if (giveUp !== undefined) this.#start([this.#begin(what, last, () => undefined, [])], 0n)
    this.#lane?.dispose()
  }

  /**
   * Blocks until all releases are complete. Errors are reported later.
   * @param timeout in milliseconds
   * @returns whether all releases are complete
   */
  finishSync(timeout?: number): boolean {
    // The release of a context's last object starts the release of the context.
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

  /**
   * Sends the releases in the next turn. One batch with all disposals of this turn wakes the native thread less often.
   */
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
    // Deliver finished calls now instead of keeping them until the event loop's next turn.
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
    // A caller awaits these releases, so they keep the process alive. Other releases do not, because work queued later
    // may run for long.
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
    // Without a native thread, this thread must wait for the device.
    for (const release of batch) release.failures.push(...failuresOf(this.#context, release.calls))
    const others = [...this.#words.subarray(0, count)].map((address) => this.#context._releaseCall('memFree', address))
    batch[0]?.failures.push(...failuresOf(this.#context, others))
    done()
  }

  /** Completes a release after its calls returned. */
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
      // The library lacks the function.
      callInContext(0n)
      release.failures.push(error)
    }
  }
}

/** Makes the calls on this thread. Continues after failures and returns them. */
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
 * Blocks until the releases of all contexts of this thread are complete, so that their memory can be allocated again.
 * @param timeout in milliseconds, for all contexts together. Default: no limit.
 * @returns whether there were releases and all are complete
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

/** Whether contexts of this thread have pending releases. */
export function hasReleases(): boolean {
  return busy.size > 0
}

/** Resolves when no context of this thread has pending releases. */
export async function whenReleasesEnd(): Promise<void> {
  // Releases do not keep the process alive, but this wait does.
  const release = holdEventLoop(undefined)
  while (busy.size > 0) await new Promise<void>((resolve) => whenNoneBusy.push(resolve))
  release()
}
