import type { CallResult, NativeLane } from '../addon/contract.js'
import { addon, pending } from '../addon/load.js'
import { recording } from '../calls/recording.js'
import { contextError } from '../context.js'
import { NativeMemory } from '../memory/nativeMemory.js'
import { type BackgroundWork, holdEventLoop } from './hold.js'

/** A native thread of its own: what is queued on it runs in order, always on that thread. */
export class Lane {
  readonly #native: NativeLane = addon().createLane()

  /** @internal */
  static nativeOf(lane: Lane): NativeLane {
    return lane.#native
  }

  /** The thread ends after what is queued. Idempotent. */
  dispose(): void {
    addon().closeLane(this.#native)
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}

export function createLane(): Lane {
  return new Lane()
}

export interface OffThreadOptions {
  /** Context that is current while the calls run; restored afterwards. */
  readonly context?: bigint
  /** Thread to run on. Default: any that is free, or a new one. */
  readonly lane?: Lane
  /** Objects that must stay reachable, and memory that must stay allocated, until the calls have run. */
  readonly keep?: readonly object[]
  /** Filled with what lets the process end although the calls have not returned. */
  readonly background?: BackgroundWork | undefined
  /**
   * Whether the first call that returns another status than 0 ends the sequence. Every result of type `int` or `unsigned`
   * counts as a status. Default `true`.
   */
  readonly stopOnError?: boolean
  /**
   * What the promise gives for each call: its `status`, 0 for functions that return none, or its `value`, as the call
   * itself would have returned it: a bigint for 64 bits, bytes for a structure. Default `status`.
   */
  readonly results?: 'status' | 'value'
}

let nextJob = 1

/**
 * Runs C calls on a native thread while JavaScript goes on. `record` runs at once: functions of sys packages called in it
 * check their arguments, are queued instead of being called, and return 0. Then all run in order on one thread.
 * @returns one result for each call that ran; shorter than the sequence when an error ended it.
 * @throws TypeError for an argument in the JavaScript heap (use NativeMemory); StatusError when the context cannot be made current.
 */
export function offThread(
  options: OffThreadOptions & { readonly results: 'value' },
  record: () => void,
): Promise<CallResult[]>
export function offThread(
  options: OffThreadOptions & { readonly results?: 'status' },
  record: () => void,
): Promise<number[]>
export function offThread(options: OffThreadOptions, record: () => void): Promise<CallResult[]> {
  const native = addon()
  const { context = 0n, lane, keep = [], stopOnError = true, results = 'status' } = options
  native.startRecording()
  recording.addon = native
  try {
    record()
    for (const object of keep) if (object instanceof NativeMemory) native.keep(object.address)
  } catch (error) {
    native.dropRecording()
    return Promise.reject(error)
  } finally {
    recording.addon = undefined
  }
  return new Promise((resolve, reject) => {
    const id = nextJob++
    const held = keep.slice()
    const release = holdEventLoop(options.background)
    pending.jobs.set(id, (contextStatus, values) => {
      held.length = 0
      release()
      if (contextStatus === 0) resolve(values)
      else reject(contextError(contextStatus, ' on the thread of the call'))
    })
    const thread = lane === undefined ? null : Lane.nativeOf(lane)
    if (!native.run(id, context, stopOnError, results === 'value', thread)) {
      pending.jobs.delete(id)
      release()
      reject(new Error(lane === undefined ? 'the system gives no more threads' : 'the lane is disposed'))
    }
  })
}
