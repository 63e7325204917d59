import { contextSlot, slots64 } from '../addon/block.js'
import type { NativeCall } from './bind.js'
import { recording } from './recording.js'

/**
 * Makes a call while the block holds another call's arguments, then restores them.
 *
 * A library does this when it resolves a symbol in that symbol's first call. The call is made immediately, even while
 * calls are being recorded.
 */
export function nestedCall(write: () => void, call: NativeCall): number {
  const saved = slots64.slice()
  const queueing = recording.addon
  slots64[contextSlot] = 0n
  queueing?.pauseRecording(true)
  recording.addon = undefined
  try {
    write()
    return call()
  } finally {
    queueing?.pauseRecording(false)
    recording.addon = queueing
    slots64.set(saved)
  }
}
