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
 * Tells ffi how the driver reads and sets the current context (`cuCtxGetCurrent`, `cuCtxSetCurrent`), once. Loads the
 * driver's library.
 * @throws LibraryNotFoundError when there is no driver.
 */
export function ensureContextFunctions(): void {
  if (isSet) return
  setContextFunctions(driver.address('cuCtxGetCurrent', 4000), driver.address('cuCtxSetCurrent', 4000), statusText)
  isSet = true
}

/**
 * Calls `fn` with a context current on this thread and restores the caller's afterwards, whatever happens. `fn` must
 * not be asynchronous: the context is restored when it returns.
 * @param context a `CUcontext`.
 * @throws StatusError when the driver refuses the context; LibraryNotFoundError when there is no driver.
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
