import { type NativeCall, putPointer, slots64 } from '@shoal/ffi/calls'

const probe = new Uint8Array(8)

/** Whether calls are being recorded for another thread: then a call made now would be queued instead. */
function callsAreRecorded(): boolean {
  try {
    putPointer(0, probe, 'callsAreRecorded', 'probe')
    return false
  } catch (error) {
    if (error instanceof TypeError) return true // memory of the JavaScript heap is refused while recording
    throw error
  }
}

/**
 * Makes a call from inside the first call of another function, whose arguments already stand in the block: they are put
 * back afterwards. Returns `undefined`, without calling, where calls are being recorded for another thread.
 */
export function callInBetween(write: () => void, call: NativeCall): number | undefined {
  const saved = slots64.slice()
  try {
    if (callsAreRecorded()) return undefined
    write()
    return call()
  } finally {
    slots64.set(saved)
  }
}
