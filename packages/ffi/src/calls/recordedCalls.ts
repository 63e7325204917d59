import { inspectKey, loadedFrom, PublicObject, requireFunction, requireMade } from '@shoal/types'
import { dropCallContext } from '../addon/block.js'
import type { Addon, NativeRecording } from '../addon/contract.js'
import { addon } from '../addon/load.js'
import { isMainThread } from '../mainThread.js'
import { recording, refuseAsynchronous } from './recording.js'

/** Recorded C calls that can be repeated in one native call. Made by {@link recordCalls}. */
export class RecordedCalls extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }
  readonly #native: Addon
  readonly #calls: NativeRecording

  /** @internal */
  constructor(native: Addon, calls: NativeRecording) {
    requireMade(calls, 'RecordedCalls', 'recordCalls', 'object')
    super()
    this.#native = native
    this.#calls = calls
  }

  /**
   * Makes the calls on this thread in order, and continues after a failed call.
   *
   * @param ignored a status that is not a failure.
   * @returns the first status that is neither 0 nor `ignored`; else 0.
   */
  make(ignored = 0): number {
    if (recording.addon !== undefined) throw new TypeError('RecordedCalls.make: calls are being recorded')
    return this.#native.replay(this.#calls, ignored)
  }

  get [Symbol.toStringTag](): string {
    return 'RecordedCalls'
  }

  override [inspectKey](): string {
    return 'RecordedCalls {}'
  }
}

/**
 * Records C calls without making them.
 *
 * Functions of sys packages called in `record` check their arguments and return 0. Memory that the arguments point to
 * must outlive the recording.
 * @throws TypeError for an argument in the JavaScript heap; also errors of `record`.
 */
export function recordCalls(record: () => void): RecordedCalls {
  const api = 'recordCalls'
  requireFunction(record, api, 'record')
  return recorded(record, api, (native) => new RecordedCalls(native, native.takeRecording()))
}

/**
 * Records C calls that run when this worker thread ends for any reason.
 *
 * The calls may block. Use them to release resources that the memory of the thread refers to. They do not run on the
 * main thread or when the process ends.
 * @returns a function that cancels the calls.
 * @throws as {@link recordCalls}
 */
export function callAtThreadEnd(record: () => void): () => void {
  if (isMainThread()) return () => undefined
  return recorded(record, 'callAtThreadEnd', (native) => {
    const number = native.keepRecording()
    return () => native.forgetRecording(number)
  })
}

function recorded<T>(record: () => void, api: string, take: (native: Addon) => T): T {
  const native = addon()
  native.startRecording()
  recording.addon = native
  try {
    refuseAsynchronous(record(), api)
    return take(native)
  } catch (error) {
    native.dropRecording()
    throw error
  } finally {
    recording.addon = undefined
    dropCallContext()
  }
}
