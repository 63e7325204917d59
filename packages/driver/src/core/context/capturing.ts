import { type CUstream, cuStreamIsCapturing } from '@shoal/cuda-sys/driver'
import { callInContext, createHostCallback, type HostCallback } from '@shoal/ffi'
import { type MemoryRange, requireSynchronous, StatusError } from '@shoal/types'
import { check, Status } from '../errors.js'
import { releaseAfterFailure } from '../lifetime.js'
import { scratch } from '../native.js'
import type { Context } from './context.js'
import { finishReleasesSync } from './releases.js'

/** Counts the captures, graphs and executable graphs that use something. */
export interface GraphUse {
  /** How many use it now. */
  users: number
  /** Called when the last user is gone. */
  unused(): void
}

/** A function that C calls while a graph uses it. */
export interface SharedCallback extends GraphUse {
  readonly callback: HostCallback
}

/** A callback nobody uses yet. A promise that `fn` returns is an uncaught exception, as anything that it throws. */
export function sharedCallback(fn: () => void, api: string): SharedCallback {
  const callback = createHostCallback(() => void requireSynchronous<unknown>(fn(), api))
  return { callback, users: 0, unused: () => callback.dispose() }
}

/** Collects what the graph of a capture needs at each launch. */
export interface CaptureNeeds {
  /** Keeps `object` alive; `check` throws once it was disposed of. */
  add(object: object, check: () => void): void
  /** Keeps `object` alive. Its disposal does not matter to the graph. */
  hold(object: object): void
  /** Counts the graph as a user. */
  addUse(use: GraphUse): void
}

/** A capture that this thread has begun and not ended. */
export interface OpenCapture {
  readonly needs: CaptureNeeds
  /** Whether the driver refuses calls of this thread that may wait, and ends the capture without a graph. */
  readonly isStrict: boolean
  /** Whether work of a captured stream goes into this capture. Only asked when captures are nested. */
  readonly has: (context: bigint, stream: bigint) => boolean
}

interface Capture extends OpenCapture {
  /** Memory that the graph itself allocates. */
  readonly own: Pick<MemoryRange, 'address' | 'byteLength'>[]
}

const captures: Capture[] = []
/** What is given back when the capture has ended. */
const delayed: { readonly what: string; readonly release: () => void }[] = []

/** A stream of this thread is captured into a graph from now on. */
export function startCapturing(capture: OpenCapture): void {
  // The driver refuses them on any thread meanwhile, and the capture would come to nothing.
  if (captures.length === 0) finishReleasesSync()
  captures.push({ ...capture, own: [] })
}

/** Ends what {@link startCapturing} began last. */
export function endCapturing(): void {
  captures.pop()
  if (captures.length > 0) return
  for (const { what, release } of delayed.splice(0)) releaseAfterFailure(what, release)
}

/**
 * Gives back what the driver waits for the device for: now, or once this thread captures no more. The driver would
 * refuse it, and the capture would come to nothing.
 */
export function afterCapture(what: string, release: () => void): void {
  if (captures.length === 0) release()
  else delayed.push({ what, release })
}

/** Whether this thread captures: what it queues runs later, and any number of times. */
export function isCapturing(): boolean {
  return captures.length > 0
}

/** Whether `withCaptureMode('relaxed', fn)` runs a function. */
let isRelaxed = false

/** Says whether the driver takes all calls of this thread from now on. Returns what held before. */
export function setRelaxed(relaxed: boolean): boolean {
  const before = isRelaxed
  isRelaxed = relaxed
  return before
}

/** Whether a call that allocates, frees or asks an event would cost this thread its capture. */
export function wouldLoseCapture(): boolean {
  return captures.length > 0 && !isRelaxed && captures.some(({ isStrict }) => isStrict)
}

/** Whether what is queued on a stream goes into a graph that this thread captures. */
export function isCaptured(context: Context, stream: CUstream): boolean {
  if (captures.length === 0) return false
  const out = scratch()
  try {
    context._callDriver('cuStreamIsCapturing', () => cuStreamIsCapturing(stream, out))
  } catch (error) {
    // The legacy default stream, for which a stream that is captured waits: it can be given as little.
    if (error instanceof StatusError && error.code === 'CUDA_ERROR_STREAM_CAPTURE_IMPLICIT') return true
    throw error
  }
  return out.i32[0] !== 0
}

const none: readonly Capture[] = []

/** The open captures that record work of a stream. */
function capturesOf(context: bigint, stream: bigint): readonly Capture[] {
  if (captures.length === 0) return none
  const out = scratch()
  callInContext(context)
  const status = cuStreamIsCapturing(stream as CUstream, out)
  // Said of the legacy default stream, which nothing captures.
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
 * Keeps an object while a graph that records work of the stream can launch. Disposing of memory of the graph's own does
 * not end that.
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

/** Notes memory that the graph of a captured stream allocates itself. */
export function noteOwnMemory(stream: bigint, context: bigint, address: bigint, byteLength: number): void {
  for (const { own } of capturesOf(context, stream)) own.push({ address, byteLength })
}

/** A function that a captured stream calls. */
export function capturedCallback(context: Context, stream: CUstream, fn: () => void, api: string): SharedCallback {
  const shared = sharedCallback(fn, api)
  useInCaptured(context._handle, stream, shared)
  return shared
}

/**
 * For what works with memory that is not there at a later launch.
 * @throws TypeError
 */
export function refuseInCapture(api: string, what: string): never {
  throw new TypeError(
    `${api}: ${what} cannot be captured into a graph, because it may be gone at a launch; use a PinnedBuffer`,
  )
}
