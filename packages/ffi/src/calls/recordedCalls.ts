import { inspectKey, loadedFrom, PublicObject, requireFunction, requireMade } from '@shoal/types'
import { dropCallContext } from '../addon/block.js'
import type { Addon, NativeRecording } from '../addon/contract.js'
import { addon } from '../addon/load.js'
import { isMainThread } from '../mainThread.js'
import { recording, refuseAsynchronous } from './recording.js'

/** C calls with their arguments, to be made again and again in one crossing. Made by {@link recordCalls}. */
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
   * Makes the calls on this thread, in their order, those behind a call that fails too.
   * @param ignored a status that is no failure.
   * @returns the first status that is neither 0 nor `ignored`; 0 when there is none.
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
 * Records C calls without making them: functions of sys packages called in `record` check their arguments and return 0.
 * Memory that they point to must outlive the recording.
 * @throws TypeError for an argument in the JavaScript heap; what `record` throws.
 */
export function recordCalls(record: () => void): RecordedCalls {
  const api = 'recordCalls'
  requireFunction(record, api, 'record')
  return recorded(record, api, (native) => new RecordedCalls(native, native.takeRecording()))
}

/**
 * Records C calls that are made when this thread ends, however it does, and may wait: for what would be left behind
 * with memory that goes with the thread. They are not made when the process ends, nor on the main thread, which ends
 * with it.
 * @returns what has them not made.
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
