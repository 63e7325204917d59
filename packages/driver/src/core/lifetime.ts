import { inNextTurn } from '@shoal/ffi'
import { adjustExternalMemory, forgetObject, takeCollected, watchObject } from '@shoal/ffi/calls'
import { DisposedError, doneNow, inspectKey, inspectLine, loadedFrom, PublicObject, refuseForged } from '@shoal/types'
import { awaitReleases, withBlockingReleases } from './releasing.js'

let isEnding = false

/**
 * Whether the process is about to end. Objects are not freed then: the system reclaims everything, and freeing would
 * wait for work in flight.
 */
export function processIsEnding(): boolean {
  return isEnding
}

const atEnd: ((isProcess: boolean) => void)[] = []
let isWatching = false

/** Starts to watch for the end of the process, once. */
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
 * Calls `handler` when this thread ends and passes whether the process ends. A worker's resources would otherwise stay
 * until the process ends. A terminated worker does not call the handler.
 */
export function tidyUpAtEnd(handler: (isProcess: boolean) => void): void {
  atEnd.push(handler)
}

/** The record of an object that can be dropped without dispose(). It must not refer to the object itself. */
export interface Leak {
  readonly what: string
  /** The call that the program omitted, such as dispose(). */
  readonly end: string
  readonly where: string | undefined
  /**
   * Frees what a collector callback can free safely and says so, or says why it is not freed. Undefined: no warning.
   */
  readonly reclaim: () => string | undefined
  /** Bytes that the object adds to the collector's memory pressure. */
  bytes: number
  /** Number of an object with much memory, for {@link reclaimDropped}. */
  id: number
  isOver: boolean
}

/** With SHOAL_TRACE_LEAKS=1, each leak warning shows where the object was created. */
const traceLeaks = process.env['SHOAL_TRACE_LEAKS'] === '1'

const leaks = new FinalizationRegistry<Leak>(collected)

/**
 * Minimum size, in bytes, of objects that are reclaimed when memory is short. Watching smaller objects would cost more
 * than their memory.
 */
const leastWatched = 64 * 1024
const watchedById = new Map<number, Leak>()
const watchedLeaks = new WeakMap<object, Leak>()
/** Number of dropped objects with memory that the collector has found so far. */
let dropped = 0

/** Returns how many objects with memory were dropped without dispose() and found so far. */
export function droppedCount(): number {
  return dropped
}

/** Changes of the memory pressure below this number of bytes are reported together. */
const leastTold = 1024 * 1024
let untold = 0

/** Changes the number of bytes that the JavaScript collector counts for objects. */
function addPressure(bytes: number): void {
  untold += bytes
  if (untold < leastTold && untold > -leastTold) return
  adjustExternalMemory(untold)
  untold = 0
}

/**
 * Runs the collector and releases dropped objects with much memory. Their memory is freed later, or on its stream.
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

/** Ends the record. Returns false if it has ended before. */
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

/** If one collector run finds more objects of a kind than this, one warning with their number replaces the others. */
const mostAlike = 3
/** The warnings of the current collector run, by kind. */
let found: Map<string, string[]> | undefined

function report(message: string, detail: string): void {
  if (found === undefined) {
    found = new Map()
    queueMicrotask(warnOfFound)
  }
  // A kind is a class and an omitted call. Sizes and devices may differ; creation sites may not.
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

// An error from a collector callback would end the process, so the warning contains the error.
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
 * Releases an object that cannot be used after a failure. The caller throws the original error, so a failure of this
 * release becomes a warning.
 */
export function releaseAfterFailure(what: string, release: () => void): void {
  try {
    release()
  } catch (error) {
    warn(`${what}: ${notFreed(error)}`)
  }
}

/** Throws the first of several failures, if any, and warns about the others. */
export function throwFirst(what: string, failures: readonly unknown[]): void {
  if (failures.length === 0) return
  for (const failure of failures.slice(1)) warn(`${what}: ${notFreed(failure)}`)
  throw failures[0]
}

/** Warns about an error at the end of a thread, which cannot report it later. */
export function warnAtEnd(what: string, error: unknown): void {
  process.emit('warning', Object.assign(new Error(`${what}: ${notFreed(error)}`), { name: 'ShoalLeakWarning' }))
}

/** Continues work that a collector callback started. No caller sees a failure, so it becomes a warning. */
export function warnOnReject(what: string, work: Promise<unknown>): void {
  work.catch((error: unknown) => warn(`${what}: ${notFreed(error)}`))
}

/**
 * Warns when `object` is collected before {@link forgetLeak} was called for it. `end` is the omitted call. `reclaim`
 * must not refer to the object. The collector runs sooner for larger `bytes`; pass the same number to forgetLeak().
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

/** Reports an object's new size to the collector. Pass the last `bytes` to {@link forgetLeak}. */
export function changeLeakBytes(object: object, leak: Leak, bytes: number): void {
  addPressure(bytes - leak.bytes)
  leak.bytes = bytes
  if (leak.id === 0 && bytes >= leastWatched) watchById(object, leak)
}

/** An object that is created and disposed of so often that watching each one would cost more than the driver call. */
export interface ShortLived {
  /** Whether it was disposed of. */
  readonly disposed: boolean
  /** @internal Watches the object with {@link watchForLeak}. dispose() must then call {@link forgetLeak}. */
  _watch(): void
}

const mostPending = 1024
/**
 * The first `pendingCount` entries are in use. The array keeps its length, because growing it again would cost too
 * much.
 */
const pending: (ShortLived | undefined)[] = new Array(mostPending).fill(undefined)
let pendingCount = 0
let willFlush = false

/**
 * Watches an object for leaks if it is not disposed of before this turn of the event loop ends. Until then this list
 * keeps the object.
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

/**
 * Ends the leak watch of a disposed object.
 * @param bytes the same number as for {@link watchForLeak}, or the last one for {@link changeLeakBytes}
 * @param isLarge whether the object was ever large enough to be found when memory is short
 */
export function forgetLeak(object: object, bytes = 0, isLarge = bytes >= leastWatched): void {
  leaks.unregister(object)
  if (bytes > 0) addPressure(-bytes)
  const leak = isLarge ? watchedLeaks.get(object) : undefined
  if (leak === undefined) return
  endLeak(leak)
  forgetObject(leak.id)
}

/** Base class of objects with a native handle: dispose() is idempotent, and later use throws. */
export abstract class Resource extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** @internal */
  declare _disposed: boolean

  /** The name of the class in messages. */
  protected abstract readonly kind: string

  // A field initializer would be a slow V8 call per object, because so many classes extend this one.
  constructor() {
    super()
    this._disposed = false
  }

  /** Whether dispose() was called. */
  get disposed(): boolean {
    return this._disposed
  }

  /**
   * Releases this object's resources. A second call does nothing. `dispose()` never blocks the thread for the device's
   * work: a native thread makes the calls that must wait, and errors of these calls become process warnings.
   */
  dispose(): void {
    if (this._disposed) return
    this._disposed = true
    this.release()
  }

  /** Like {@link dispose}, but blocks the thread until the driver has released everything. @throws StatusError */
  disposeSync(): void {
    withBlockingReleases(() => this.dispose())
  }

  /** Like {@link dispose}, but resolves when the driver has released everything. @throws (rejects) StatusError */
  async [Symbol.asyncDispose](): Promise<void> {
    await awaitReleases(() => this.dispose())
    await doneNow()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  /** Releases the resources. The first dispose() calls it once. */
  protected abstract release(): void

  /** Facts that distinguish this object from others of its class, for {@link inspectLine}. Must never throw. */
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
