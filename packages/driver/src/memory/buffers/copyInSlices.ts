import { nextTurn } from '@shoal/ffi'

// Some tenths of a millisecond of copying, also where each page is touched for the first time: longer would be felt as
// a stall of the event loop.
const sliceBytes = 1024 * 1024

/**
 * Copies bytes without holding the event loop for long: the first slice at once, each other in a turn of its own.
 * Undefined where one slice was all.
 * @param what the array of the program's, for the error: `API: NAME`
 * @throws TypeError when one side was detached or shrunk meanwhile.
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
