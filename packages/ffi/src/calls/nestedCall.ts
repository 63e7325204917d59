import { contextSlot, slots64 } from '../addon/block.js'
import type { NativeCall } from './bind.js'
import { recording } from './recording.js'

/**
 * Makes a call while the arguments of another one stand in the block already, as a library does that resolves a symbol
 * in that symbol's first call. Made now even when calls are being recorded; the block is as it was afterwards.
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
