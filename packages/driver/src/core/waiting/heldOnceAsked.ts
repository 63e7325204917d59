import { nextTurn } from '@shoal/ffi'
import { holdEventLoop } from '@shoal/ffi/calls'
import { isLoopDue } from '@shoal/types'

/**
 * Returns a getter of a promise. The promise does not keep the process alive until a caller reads the getter; from then
 * on it does, until it settles.
 */
export function heldOnceAsked(promise: Promise<void>): () => Promise<void> {
  let isOver = false
  let stopHolding: (() => void) | undefined
  const settled = promise.finally(() => {
    isOver = true
    stopHolding?.()
  })
  return () => {
    if (!isOver) stopHolding ??= holdEventLoop(undefined)
    else if (isLoopDue()) return nextTurn().then(() => settled)
    return settled
  }
}
