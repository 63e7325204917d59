import { driver } from '@shoal/cuda-sys/driver'
import { enterContext, leaveContext, setContextFunctions } from '@shoal/ffi'

// `@shoal/cuda-sys` has these two as well. Importing it beside `@shoal/cuda-sys/driver` brings the runtime's library along
// and takes some megabytes of resident memory, which every program that imports this package would pay.

let isSet = false

/** Tells ffi how the driver reads and sets the current context, once. @throws LibraryNotFoundError without a driver. */
export function ensureContextFunctions(): void {
  if (isSet) return
  setContextFunctions(driver.address('cuCtxGetCurrent', 4000), driver.address('cuCtxSetCurrent', 4000))
  isSet = true
}

/** Calls `fn` with a context current and restores the caller's afterwards, whatever happens. */
export function withContext<T>(context: bigint, fn: () => T): T {
  ensureContextFunctions()
  const previous = enterContext(context)
  try {
    return fn()
  } finally {
    leaveContext(previous)
  }
}
