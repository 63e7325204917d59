import {
  type CUcontext,
  type CUevent,
  type CUstream,
  cuEventCreate,
  cuEventDestroy,
  cuEventRecord,
  withContext,
} from '@shoal/cuda-sys/driver'
import { checkRelease, isGone, Status } from '../errors.js'
import { scratch } from '../native.js'
import { isCapturing } from './capturing.js'
import type { ContextCalls } from './contextCalls.js'

const eventDisableTiming = 2
/** `CU_STREAM_LEGACY`. Work on it waits for all streams except non-blocking ones. */
const legacyStream = 1n as CUstream

/** Events without timing for a context's waits, and for work of destroyed streams. */
export class EventPool {
  readonly #context: ContextCalls
  readonly #idle: CUevent[] = []
  readonly #leftBehind: CUevent[] = []

  constructor(context: ContextCalls) {
    this.#context = context
  }

  /** Takes an event without timing from the pool. */
  take(): CUevent {
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    const out = scratch()
    this.#context._callDriver('cuEventCreate', () => cuEventCreate(out, eventDisableTiming))
    return out.u64[0] as CUevent
  }

  /** Returns an event to the pool after its last wait. */
  giveBack(event: CUevent): void {
    if (!this.#context.disposed) this.#idle.push(event)
  }

  /**
   * Records an event on a stream before the stream is destroyed. The event shows when the remaining work completes,
   * because a destroyed stream cannot be queried.
   */
  leaveBehind(stream: CUstream): void {
    // A query would invalidate the capture.
    if (!isCapturing()) {
      for (const event of this.#leftBehind.splice(0)) {
        if (this.#context._status('eventQuery', event) === Status.notReady) this.#leftBehind.push(event)
        else this.#idle.push(event)
      }
      if (this.#context._status('streamQuery', stream) !== Status.notReady) return
    }
    const event = this.take()
    // An event that cannot be recorded counts as complete. The pool keeps it.
    this.#leftBehind.push(event)
    this.#context._callDriver('cuEventRecord', () => cuEventRecord(event, stream))
  }

  /** Whether work may be in flight: in the default stream and the streams it waits for, or in destroyed streams. */
  hasWork(): boolean {
    if (this.#context._status('streamQuery', legacyStream) !== Status.success) return true
    return this.#leftBehind.some((event) => this.#context._status('eventQuery', event) !== Status.success)
  }

  /** Forgets all events. A reset of the context destroyed them. */
  forgetAll(): void {
    this.#idle.length = this.#leftBehind.length = 0
  }

  /** Destroys all events without a pending wait. */
  destroyAll(): void {
    const events = [...this.#idle.splice(0), ...this.#leftBehind.splice(0)]
    if (events.length === 0) return
    const status = withContextForRelease(this.#context._handle, () => {
      let first: number = Status.success
      for (const event of events) {
        const status: number = cuEventDestroy(event)
        if (first === Status.success) first = status
      }
      return first
    })
    checkRelease(status, 'cuEventDestroy')
  }
}

function withContextForRelease(handle: CUcontext, call: () => number): number {
  try {
    return withContext(handle, call)
  } catch (error) {
    const status = (error as { status?: unknown }).status
    if (typeof status === 'number' && isGone(status)) return status
    throw error
  }
}
