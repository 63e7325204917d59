import { requireAddress, requireFunction, StatusError } from '@shoal/types'
import { contextSlot, slots64 } from './addon/block.js'
import { addon } from './addon/load.js'

/** What a status of the driver is called, and what it means. */
export interface StatusText {
  /** The name in C. */
  readonly name: string
  /** What the library says of it. */
  readonly description: string
}

let describe: ((status: number) => StatusText | undefined) | undefined
let areSet = false

/**
 * Gives the addon the addresses of `cuCtxGetCurrent` and `cuCtxSetCurrent`. Everything here works on whatever current
 * context these two speak of.
 * @param statusText names the statuses of the two functions, for errors.
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
 * Runs the next call of this thread, and only that one, with a context current; the caller's is restored when it
 * returns. Costs a few nanoseconds where the context is current already. The call returns the driver's status when the
 * context cannot be made current. Arguments that are refused take the context back.
 */
export function callInContext(context: bigint): void {
  slots64[contextSlot] = context
}

let enter: (() => number) | undefined
let leave: (() => number) | undefined

/** The error of a context that could not be made current. */
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
 * Makes a context current on this thread. Returns the handle of the one that was current, or `undefined` when nothing
 * had to change; hand that to {@link leaveContext}.
 * @throws StatusError when the driver refuses.
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

/** Restores what {@link enterContext} returned. */
export function leaveContext(previous: bigint | undefined): void {
  if (previous === undefined) return
  requireAddress(previous, 'leaveContext', 'previous')
  leave ??= addon().leaveContext
  slots64[contextSlot] = previous
  // The caller's context may have been destroyed in between; then there is none to go back to. The slot is empty by
  // now.
  if (leave() !== 0) leave()
}
