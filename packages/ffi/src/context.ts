import { requireAddress, requireFunction, StatusError } from '@shoal/types'
import { contextSlot, slots64 } from './addon/block.js'
import { addon } from './addon/load.js'

/** Name and description of a driver status. */
export interface StatusText {
  /** Name in C. */
  readonly name: string
  /** The library's description. */
  readonly description: string
}

let describe: ((status: number) => StatusText | undefined) | undefined
let areSet = false

/**
 * Sets the addresses of `cuCtxGetCurrent` and `cuCtxSetCurrent` in the addon.
 *
 * All context functions of this package use the current context of these two functions.
 * @param statusText names their statuses for errors.
 */
export function setContextFunctions(
  getCurrent: bigint,
  setCurrent: bigint,
  statusText?: (status: number) => StatusText | undefined,
): void {
  requireAddress(getCurrent, 'setContextFunctions', 'getCurrent')
  requireAddress(setCurrent, 'setContextFunctions', 'setCurrent')
  if (statusText !== undefined) requireFunction(statusText, 'setContextFunctions', 'statusText')
  addon().setContextFunctions(getCurrent, setCurrent)
  describe = statusText
  areSet = true
}

/**
 * Makes a context current for the next call of this thread only.
 *
 * The caller's context is restored after the call.
 *
 * Costs a few nanoseconds if the context is already current. The call returns the driver's status if the context cannot
 * be made current. A call that refuses its arguments clears the context.
 */
export function callInContext(context: bigint): void {
  slots64[contextSlot] = context
}

let enter: (() => number) | undefined
let leave: (() => number) | undefined

/** Returns the error for a context that could not be made current. */
export function contextError(status: number, where = ''): StatusError {
  const text = describe?.(status)
  const why = areSet ? text?.description : 'call ensureContextFunctions() of @shoal/cuda-sys first'
  return new StatusError({
    library: 'CUDA driver',
    api: 'cuCtxSetCurrent',
    status,
    code: text?.name ?? `CUresult(${status})`,
    description: `the context could not be made current${where}${why === undefined ? '' : `: ${why}`}`,
    isSticky: false,
  })
}

/**
 * Makes a context current on this thread.
 *
 * Returns the handle of the previous context for {@link leaveContext}, or `undefined` if nothing changed.
 * @throws StatusError if the driver refuses.
 */
export function enterContext(context: bigint): bigint | undefined {
  requireAddress(context, 'enterContext', 'context')
  enter ??= addon().enterContext
  slots64[contextSlot] = context
  const outcome = enter()
  const previous = outcome === 1 ? slots64[contextSlot] : undefined
  slots64[contextSlot] = 0n
  if (outcome < 0) throw contextError(-outcome)
  return previous
}

/** Restores the context that {@link enterContext} returned. */
export function leaveContext(previous: bigint | undefined): void {
  if (previous === undefined) return
  requireAddress(previous, 'leaveContext', 'previous')
  leave ??= addon().leaveContext
  slots64[contextSlot] = previous
  // If the caller's context was destroyed meanwhile, the second call sets none: the slot is already empty.
  if (leave() !== 0) leave()
}
