import { type CUstream, cuStreamIsCapturing } from '@shoal/cuda-sys/driver/common'
import { createHostCallback, type HostCallback } from '@shoal/ffi'
import { StatusError } from '@shoal/types'
import { releaseAfterFailure } from '../lifetime.js'
import { scratch } from '../native.js'
import type { Context } from './context.js'

/** A function that C calls, until nothing has it any more. */
export interface SharedCallback {
  readonly callback: HostCallback
  users: number
}

/** A callback nobody uses yet. */
export function sharedCallback(fn: () => void): SharedCallback {
  return { callback: createHostCallback(fn), users: 0 }
}

/** For each capture that is open, the functions that its graph calls. */
const captures: SharedCallback[][] = []
/** What is given back when the capture has ended. */
const delayed: { readonly what: string; readonly release: () => void }[] = []

/** A stream of this thread is captured into a graph from now on. */
export function startCapturing(): void {
  captures.push([])
}

/** What {@link startCapturing} said last has ended. Gives the functions that the graph may call; of each the capture is a user. */
export function endCapturing(): readonly SharedCallback[] {
  const callbacks = captures.pop() ?? []
  if (captures.length > 0) return callbacks
  for (const { what, release } of delayed.splice(0)) releaseAfterFailure(what, release)
  return callbacks
}

/** A function that a captured stream calls. Of captures within each other any may have the stream: all use it until they end. */
export function capturedCallback(fn: () => void): HostCallback {
  const shared = sharedCallback(fn)
  for (const callbacks of captures) callbacks.push(shared)
  shared.users = captures.length
  return shared.callback
}

/**
 * Gives back what the driver waits for the device for: now, or once this thread captures no more. The driver would refuse it,
 * and the capture would come to nothing.
 */
export function afterCapture(what: string, release: () => void): void {
  if (captures.length === 0) release()
  else delayed.push({ what, release })
}

/** Whether this thread captures: what it queues runs later, and any number of times. */
export function isCapturing(): boolean {
  return captures.length > 0
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

/**
 * For what works with memory that is not there at a later launch.
 * @throws TypeError
 */
export function refuseInCapture(api: string, what: string): never {
  throw new TypeError(
    `${api}: ${what} cannot be captured into a graph: it would not be there at a launch; use a PinnedBuffer`,
  )
}
