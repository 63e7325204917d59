import type { NativeLibrary } from '@shoal/ffi'
import { putPointer, putSize } from '@shoal/ffi/calls'

/**
 * Binds a loop in C in this process, `int NAME(size_t n, double *nanoseconds)`. Returns the nanoseconds per iteration.
 */
export function loopInC(library: NativeLibrary, name: string): (count: number) => number {
  const call = library.bind(name, 0, 2)
  const nanoseconds = new Float64Array(1)
  return (count) => {
    putSize(0, count, name, 'n')
    putPointer(1, nanoseconds, name, 'nanoseconds')
    call()
    return (nanoseconds[0] ?? Number.NaN) / count
  }
}
