import { nextTurn } from '@shoal/ffi'

// Copying this many bytes takes some tenths of a millisecond, even on first touch of the pages. More would stall the
// event loop noticeably.
const sliceBytes = 1024 * 1024

/**
 * Copies bytes without blocking the event loop for long: the first slice now, each other in a separate turn. Returns
 * undefined if one slice was enough.
 * @param what the program's array in the error: `API: NAME`
 * @throws TypeError when one array was detached or shrunk meanwhile
 */
export function copyInSlices(target: Uint8Array, source: Uint8Array, what: string): Promise<void> | undefined {
  const { length } = source
  copySlice(target, source, 0, length, what)
  return length > sliceBytes ? copyRest(target, source, length, what) : undefined
}

async function copyRest(target: Uint8Array, source: Uint8Array, length: number, what: string): Promise<void> {
  for (let start = sliceBytes; start < length; start += sliceBytes) {
    await nextTurn()
    copySlice(target, source, start, length, what)
  }
}

function copySlice(target: Uint8Array, source: Uint8Array, start: number, length: number, what: string): void {
  if (source.length < length || target.length < length) {
    throw new TypeError(`${what} must keep its length until the copy completes, not be detached or shrunk`)
  }
  target.set(source.subarray(start, start + sliceBytes), start)
}
