import { enterContext, leaveContext, readCString, type StatusText, setContextFunctions } from '@shoal/ffi'
import { type CUresult, cuGetErrorName, cuGetErrorString } from './generated/index.gen.js'
import { driver } from './library.js'

let isSet = false

function statusText(status: number): StatusText | undefined {
  const text = new BigUint64Array(1)
  const read = (of: typeof cuGetErrorName): string | null =>
    of(status as CUresult, text) === 0 ? readCString(text[0] as bigint) : null
  const name = read(cuGetErrorName)
  return name === null ? undefined : { name, description: read(cuGetErrorString) ?? '' }
}

/**
 * Registers `cuCtxGetCurrent` and `cuCtxSetCurrent` with ffi, once. Loads the driver's library.
 * @throws LibraryNotFoundError when there is no driver
 */
export function ensureContextFunctions(): void {
  if (isSet) return
  setContextFunctions(driver.address('cuCtxGetCurrent', 4000), driver.address('cuCtxSetCurrent', 4000), statusText)
  isSet = true
}

/**
 * Calls `fn` with a context current on this thread, then restores the caller's context, also after an error. `fn` must
 * be synchronous, because the context is restored when it returns.
 * @param context a `CUcontext`
 * @throws StatusError when the driver refuses the context; LibraryNotFoundError when there is no driver
 *
 * @example
 * const sizes = new BigUint64Array(2) // free and total bytes
 * withContext(context, () => cuMemGetInfo(sizes.subarray(0, 1), sizes.subarray(1)))
 */
export function withContext<T>(context: bigint, fn: () => T): T {
  ensureContextFunctions()
  const previous = enterContext(context)
  try {
    return fn()
  } finally {
    leaveContext(previous)
  }
}
