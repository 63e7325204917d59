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
/** `CU_STREAM_LEGACY`: done when all streams but non-blocking ones are. */
const legacyStream = 1n as CUstream

/** Events without timing that a context keeps for waits, and those behind the work of streams that were disposed of. */
export class EventPool {
  readonly #context: ContextCalls
  readonly #idle: CUevent[] = []
  readonly #leftBehind: CUevent[] = []

  constructor(context: ContextCalls) {
    this.#context = context
  }

  /** An event without timing, from the pool. */
  take(): CUevent {
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    const out = scratch()
    this.#context._callDriver('cuEventCreate', () => cuEventCreate(out, eventDisableTiming))
    return out.u64[0] as CUevent
  }

  /** Gives back an event that nothing waits for any more. */
  giveBack(event: CUevent): void {
    if (!this.#context.disposed) this.#idle.push(event)
  }

  /**
   * A stream is about to be destroyed. Nothing can be asked of it afterwards, so an event tells when the work that it
   * may still have has ended.
   */
  leaveBehind(stream: CUstream): void {
    // Asking would invalidate the capture.
    if (!isCapturing()) {
      for (const event of this.#leftBehind.splice(0)) {
        if (this.#context._status('eventQuery', event) === Status.notReady) this.#leftBehind.push(event)
        else this.#idle.push(event)
      }
      if (this.#context._status('streamQuery', stream) !== Status.notReady) return
    }
    const event = this.take()
    // Where it cannot be recorded it counts as reached, and is not lost.
    this.#leftBehind.push(event)
    this.#context._callDriver('cuEventRecord', () => cuEventRecord(event, stream))
  }

  /**
   * Whether work may be under way: in the default stream and all that it waits for, or in streams that were disposed
   * of.
   */
  hasWork(): boolean {
    if (this.#context._status('streamQuery', legacyStream) !== Status.success) return true
    return this.#leftBehind.some((event) => this.#context._status('eventQuery', event) !== Status.success)
  }

  /** The context was reset, and the events went with it. */
  forgetAll(): void {
    this.#idle.length = this.#leftBehind.length = 0
  }

  /** Destroys what nothing waits for. */
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
