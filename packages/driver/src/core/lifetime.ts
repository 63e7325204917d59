import { inNextTurn } from '@shoal/ffi'
import { adjustExternalMemory, forgetObject, takeCollected, watchObject } from '@shoal/ffi/calls'
import { DisposedError, doneNow, inspectKey, inspectLine, loadedFrom, PublicObject, refuseForged } from '@shoal/types'
import { awaitReleases, withBlockingReleases } from './releasing.js'

let isEnding = false

/**
 * Whether the process is about to end. What was made is not freed any more then: the system takes it all back, and
 * freeing would wait for work in flight.
 */
export function processIsEnding(): boolean {
  return isEnding
}

const atEnd: ((isProcess: boolean) => void)[] = []
let isWatching = false

/** Watches for the end of the process, once. */
export function watchForEnd(): void {
  if (isWatching) return
  isWatching = true
  if (process.getBuiltinModule('node:worker_threads').isMainThread) {
    process.prependListener('exit', () => {
      for (const handler of atEnd) handler(true)
      isEnding = true
    })
  } else {
    process.once('exit', () => {
      for (const handler of atEnd) handler(false)
    })
  }
}

/**
 * Calls `handler` when this thread ends, and says whether the process does: what a worker leaves behind would stay with
 * it. A worker that is terminated has no such moment.
 */
export function tidyUpAtEnd(handler: (isProcess: boolean) => void): void {
  atEnd.push(handler)
}

/** What the collector finds when an object was dropped without dispose(). It must not refer to the object itself. */
export interface Leak {
  readonly what: string
  /** What should have been called. */
  readonly end: string
  readonly where: string | undefined
  /** Frees what is safe to free from a collector callback and says so, or says why it stays. Undefined: no warning. */
  readonly reclaim: () => string | undefined
  /** What the collector counts it as. */
  bytes: number
  /** Of much memory: its number for {@link reclaimDropped}. */
  id: number
  isOver: boolean
}

/** Set SHOAL_TRACE_LEAKS=1 to see in each leak warning where the object was made. */
const traceLeaks = process.env['SHOAL_TRACE_LEAKS'] === '1'

const leaks = new FinalizationRegistry<Leak>(collected)

/**
 * Objects with at least so many bytes are looked for when memory is short. Watching others would cost more than they
 * hold.
 */
const leastWatched = 64 * 1024
const watchedById = new Map<number, Leak>()
const watchedLeaks = new WeakMap<object, Leak>()
/** Objects with memory that the collector has found so far. */
let dropped = 0

/** How many objects with memory were dropped without dispose(), and found, so far. */
export function droppedCount(): number {
  return dropped
}

/** Changes of less than so many bytes are told to the collector together. */
const leastTold = 1024 * 1024
let untold = 0

/** The collector of JavaScript counts so many bytes more, or fewer, as held by objects. */
function addPressure(bytes: number): void {
  untold += bytes
  if (untold < leastTold && untold > -leastTold) return
  adjustExternalMemory(untold)
  untold = 0
}

/**
 * Runs the collector, and gives back what objects with much memory held that were dropped. Their memory is freed later,
 * or on its stream.
 * @returns whether there were any
 */
export function reclaimDropped(): boolean {
  flushPending()
  if (watchedById.size === 0) return false
  const before = dropped
  for (const id of takeCollected()) {
    const leak = watchedById.get(id)
    if (leak !== undefined) collected(leak)
  }
  return dropped > before
}

/** Whether the object is over for the first time. */
function endLeak(leak: Leak): boolean {
  if (leak.isOver) return false
  leak.isOver = true
  if (leak.id > 0) watchedById.delete(leak.id)
  return true
}

function collected(leak: Leak): void {
  if (!endLeak(leak)) return
  if (leak.id > 0) forgetObject(leak.id)
  if (leak.bytes > 0) {
    dropped += 1
    addPressure(-leak.bytes)
  }
  const outcome = reclaim(leak)
  if (outcome === undefined) return
  const detail = leak.where === undefined ? '' : `\nmade ${leak.where}`
  report(`${leak.what} was dropped without ${leak.end}; ${outcome}`, detail)
}

/** More of a kind than this, found by one run of the collector, are one warning with their number. */
const mostAlike = 3
/** What the collector has found in the run that is under way: the warnings of each kind. */
let found: Map<string, string[]> | undefined

function report(message: string, detail: string): void {
  if (found === undefined) {
    found = new Map()
    queueMicrotask(warnOfFound)
  }
  // A kind is a class and an end: sizes and devices may differ, places where objects were made may not.
  const kind = message.replace(/\d+/g, '') + detail
  const alike = found.get(kind)
  if (alike === undefined) found.set(kind, [message + detail])
  else alike.push(message + detail)
}

function warnOfFound(): void {
  const kinds = [...(found?.values() ?? [])]
  found = undefined
  for (const alike of kinds) {
    if (alike.length > mostAlike) warn(`${alike.length} objects like this: ${alike[0]}`)
    else for (const message of alike) warn(message)
  }
}

function warn(message: string): void {
  process.emitWarning(message, { type: 'ShoalLeakWarning' })
}

// An error thrown from a collector callback would end the process; in the warning it is seen all the same.
function reclaim(leak: Leak): string | undefined {
  try {
    return leak.reclaim()
  } catch (error) {
    return notFreed(error)
  }
}

function notFreed(error: unknown): string {
  return `what it held could not be freed: ${error instanceof Error ? error.message : String(error)}`
}

/**
 * Gives back what was made and cannot be put to use. The error that led here is the one to throw, so a failure of this
 * is a warning.
 */
export function releaseAfterFailure(what: string, release: () => void): void {
  try {
    release()
  } catch (error) {
    warn(`${what}: ${notFreed(error)}`)
  }
}

/** After several steps that were all to be tried: throws the first failure, if there is one; of others it warns. */
export function throwFirst(what: string, failures: readonly unknown[]): void {
  if (failures.length === 0) return
  for (const failure of failures.slice(1)) warn(`${what}: ${notFreed(failure)}`)
  throw failures[0]
}

/** For the end of a thread, which has no later moment. */
export function warnAtEnd(what: string, error: unknown): void {
  process.emit('warning', Object.assign(new Error(`${what}: ${notFreed(error)}`), { name: 'ShoalLeakWarning' }))
}

/** Lets go on what a collector callback began. Nobody else would hear of a failure: it is a warning, too. */
export function warnOnReject(what: string, work: Promise<unknown>): void {
  work.catch((error: unknown) => warn(`${what}: ${notFreed(error)}`))
}

/**
 * Reports `object` when it is collected before {@link forgetLeak} was called for it; `end` is what should have been
 * called. `reclaim` must not refer to the object. The collector runs sooner, the more `bytes` there are; forgetLeak()
 * needs them again.
 */
export function watchForLeak(
  object: object,
  what: string,
  reclaim: () => string | undefined,
  end = 'dispose()',
  bytes = 0,
): Leak {
  const where = traceLeaks ? (new Error().stack ?? '').split('\n').slice(2).join('\n').trim() : undefined
  const leak: Leak = { what, end, where, reclaim, bytes, id: 0, isOver: false }
  leaks.register(object, leak, object)
  if (bytes === 0) return leak
  addPressure(bytes)
  if (bytes >= leastWatched) watchById(object, leak)
  return leak
}

function watchById(object: object, leak: Leak): void {
  leak.id = watchObject(object)
  watchedById.set(leak.id, leak)
  watchedLeaks.set(object, leak)
}

/** Tells the collector that an object has grown or shrunk. {@link forgetLeak} takes the last `bytes`. */
export function changeLeakBytes(object: object, leak: Leak, bytes: number): void {
  addPressure(bytes - leak.bytes)
  leak.bytes = bytes
  if (leak.id === 0 && bytes >= leastWatched) watchById(object, leak)
}

/** What is made and disposed of so often that watching each one would cost more than the call of the driver. */
export interface ShortLived {
  /** Whether it was disposed of. */
  readonly disposed: boolean
  /** @internal Has the collector watch it, with {@link watchForLeak}, which dispose() then has to take back. */
  _watch(): void
}

const mostPending = 1024
/** Filled up to `pendingCount`. It keeps its length: growing it anew would cost more than what it is for. */
const pending: (ShortLived | undefined)[] = new Array(mostPending).fill(undefined)
let pendingCount = 0
let willFlush = false

/**
 * Has the collector watch an object unless it is disposed of before this turn of the event loop ends. Until then it is
 * held here.
 */
export function watchLater(object: ShortLived): void {
  if (traceLeaks) {
    object._watch()
    return
  }
  if (pendingCount === mostPending) flushPending()
  pending[pendingCount] = object
  pendingCount += 1
  if (willFlush) return
  willFlush = true
  inNextTurn(endOfTurn).unref()
}

function endOfTurn(): void {
  willFlush = false
  flushPending()
}

function flushPending(): void {
  const count = pendingCount
  pendingCount = 0
  for (let index = 0; index < count; index += 1) {
    const object = pending[index]
    pending[index] = undefined
    if (object !== undefined && !object.disposed) object._watch()
  }
}

/** The object was disposed of: nothing to report. @param bytes as they were given to {@link watchForLeak} */
export function forgetLeak(object: object, bytes = 0, isLarge = bytes >= leastWatched): void {
  leaks.unregister(object)
  if (bytes > 0) addPressure(-bytes)
  const leak = isLarge ? watchedLeaks.get(object) : undefined
  if (leak === undefined) return
  endLeak(leak)
  forgetObject(leak.id)
}

/** What everything with a native handle shares: an idempotent dispose() and the refusal of use after it. */
export abstract class Resource extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** @internal */
  declare _disposed: boolean

  /** The name of the class in messages. */
  protected abstract readonly kind: string

  // Defining it where it is declared would be a slow call of V8 for each object, as so many classes extend this one.
  constructor() {
    super()
    this._disposed = false
  }

  /** Whether dispose() was called. */
  get disposed(): boolean {
    return this._disposed
  }

  /**
   * Releases what this object holds. Calling it again does nothing. It never blocks the thread for work of the device:
   * what must wait for that is released on a native thread, and an error of it becomes a process warning.
   */
  dispose(): void {
    if (this._disposed) return
    this._disposed = true
    this.release()
  }

  /**
   * The same as {@link dispose}, but blocks the thread until the driver has released everything. @throws StatusError
   */
  disposeSync(): void {
    withBlockingReleases(() => this.dispose())
  }

  /** The same as {@link dispose}; resolves when the driver has released everything. @throws (rejects) StatusError */
  async [Symbol.asyncDispose](): Promise<void> {
    await awaitReleases(() => this.dispose())
    await doneNow()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  /** Called once, by the first dispose(). */
  protected abstract release(): void

  /** What tells this object from others of its class, for {@link inspectLine}. Must not throw, also after dispose(). */
  protected inspectFacts(): { readonly [fact: string]: unknown } {
    return {}
  }

  get [Symbol.toStringTag](): string {
    return this.kind
  }

  override [inspectKey](): string {
    return inspectLine(this.kind, { ...this.inspectFacts(), disposed: this.disposed || undefined })
  }

  /** @internal Throws {@link DisposedError} after dispose(). */
  _requireAlive(): void {
    if (this._disposed === false) return
    refuseForged(this, this.constructor.name, 'this')
    throw new DisposedError(this.kind)
  }
}
