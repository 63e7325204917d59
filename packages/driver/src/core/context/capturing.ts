import { type CUstream, cuStreamIsCapturing } from '@shoal/cuda-sys/driver'
import { callInContext, createHostCallback, type HostCallback } from '@shoal/ffi'
import { type MemoryRange, requireSynchronous, StatusError } from '@shoal/types'
import { check, Status } from '../errors.js'
import { releaseAfterFailure } from '../lifetime.js'
import { scratch } from '../native.js'
import type { Context } from './context.js'
import { finishReleasesSync } from './releases.js'

/** Counts the captures, graphs and executable graphs that use an object. */
export interface GraphUse {
  /** Current number of users. */
  users: number
  /** Called when the last user ends. */
  unused(): void
}

/** A JavaScript function that C calls while a graph uses it. */
export interface SharedCallback extends GraphUse {
  readonly callback: HostCallback
}

/** Creates a callback without users. An error or a rejected promise of `fn` is an uncaught exception. */
export function sharedCallback(fn: () => void, api: string): SharedCallback {
  const callback = createHostCallback(() => void requireSynchronous<unknown>(fn(), api))
  return { callback, users: 0, unused: () => callback.dispose() }
}

/** Collects what the graph of a capture needs at each launch. */
export interface CaptureNeeds {
  /** Keeps `object` alive. `check` throws after the object was disposed of. */
  add(object: object, check: () => void): void
  /** Keeps `object` alive. The graph ignores the object's disposal. */
  hold(object: object): void
  /** Counts the graph as a user. */
  addUse(use: GraphUse): void
}

/** A capture that this thread has started and not ended. */
export interface OpenCapture {
  readonly needs: CaptureNeeds
  /** True if calls of this thread that may wait fail and invalidate the capture. */
  readonly isStrict: boolean
  /** Returns whether a captured stream records into this capture. Called only for nested captures. */
  readonly has: (context: bigint, stream: bigint) => boolean
}

interface Capture extends OpenCapture {
  /** Memory that the graph itself allocates. */
  readonly own: Pick<MemoryRange, 'address' | 'byteLength'>[]
}

const captures: Capture[] = []
/** Releases that wait for the end of the capture. */
const delayed: { readonly what: string; readonly release: () => void }[] = []

/** Registers a capture that starts on a stream of this thread. */
export function startCapturing(capture: OpenCapture): void {
  // During the capture the driver refuses releases on every thread, and a refused release invalidates the capture.
  if (captures.length === 0) finishReleasesSync()
  captures.push({ ...capture, own: [] })
}

/** Removes the capture that {@link startCapturing} registered last. */
export function endCapturing(): void {
  captures.pop()
  if (captures.length > 0) return
  for (const { what, release } of delayed.splice(0)) releaseAfterFailure(what, release)
}

/**
 * Runs a release that waits for the device, immediately or after this thread's last capture. During a capture the
 * driver refuses such a release and invalidates the capture.
 */
export function afterCapture(what: string, release: () => void): void {
  if (captures.length === 0) release()
  else delayed.push({ what, release })
}

/** Whether this thread is capturing. Captured work runs later, any number of times. */
export function isCapturing(): boolean {
  return captures.length > 0
}

/** True while `withCaptureMode('relaxed', fn)` runs a function. */
let isRelaxed = false

/** Sets whether the driver accepts all calls of this thread. Returns the previous value. */
export function setRelaxed(relaxed: boolean): boolean {
  const before = isRelaxed
  isRelaxed = relaxed
  return before
}

/** Whether allocating, freeing or querying an event would invalidate a capture of this thread. */
export function wouldLoseCapture(): boolean {
  return captures.length > 0 && !isRelaxed && captures.some(({ isStrict }) => isStrict)
}

/** Whether work on a stream is recorded into a graph that this thread captures. */
export function isCaptured(context: Context, stream: CUstream): boolean {
  if (captures.length === 0) return false
  const out = scratch()
  try {
    context._callDriver('cuStreamIsCapturing', () => cuStreamIsCapturing(stream, out))
  } catch (error) {
    // A captured stream synchronizes with the legacy default stream, so that stream cannot take other work either.
    if (error instanceof StatusError && error.code === 'CUDA_ERROR_STREAM_CAPTURE_IMPLICIT') return true
    throw error
  }
  return out.i32[0] !== 0
}

const none: readonly Capture[] = []

/** Returns the open captures that record work of a stream. */
function capturesOf(context: bigint, stream: bigint): readonly Capture[] {
  if (captures.length === 0) return none
  const out = scratch()
  callInContext(context)
  const status = cuStreamIsCapturing(stream as CUstream, out)
  // The driver returns this status for the legacy default stream, which cannot be captured.
  if (status === Status.streamCaptureImplicit) return none
  check(status, 'cuStreamIsCapturing')
  if (out.i32[0] === 0) return none
  return captures.length === 1 ? captures : captures.filter(({ has }) => has(context, stream))
}

/** Whether this thread has an open capture that records work of a stream. */
export function isInCapture(context: bigint, stream: bigint): boolean {
  return capturesOf(context, stream).length > 0
}

/** Counts the graphs that record work of a stream as users. */
export function useInCaptured(context: bigint, stream: bigint, use: GraphUse): void {
  for (const { needs } of capturesOf(context, stream)) needs.addUse(use)
}

/**
 * Keeps an object alive while a graph that records work of the stream can launch. Disposing of memory that the graph
 * itself allocates does not invalidate the graph.
 */
export function keepForGraphs(
  context: bigint,
  stream: bigint,
  object: object,
  check: () => void,
  range?: MemoryRange,
): void {
  for (const { needs, own } of capturesOf(context, stream)) {
    if (range !== undefined && own.some((memory) => isWithin(range, memory))) needs.hold(object)
    else needs.add(object, check)
  }
}

function isWithin(range: MemoryRange, { address, byteLength }: Capture['own'][number]): boolean {
  return address <= range.address && range.address < address + BigInt(byteLength)
}

/** Registers memory that the graph of a captured stream allocates. */
export function noteOwnMemory(stream: bigint, context: bigint, address: bigint, byteLength: number): void {
  for (const { own } of capturesOf(context, stream)) own.push({ address, byteLength })
}

/** Creates a callback for a captured stream. */
export function capturedCallback(context: Context, stream: CUstream, fn: () => void, api: string): SharedCallback {
  const shared = sharedCallback(fn, api)
  useInCaptured(context._handle, stream, shared)
  return shared
}

/**
 * Refuses to capture an operation whose memory may not exist at a later launch.
 * @throws TypeError
 */
export function refuseInCapture(api: string, what: string): never {
  throw new TypeError(
    `${api}: ${what} cannot be captured into a graph, because it may be gone at a launch; use a PinnedBuffer`,
  )
}
