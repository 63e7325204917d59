import { nextTurn } from '@shoal/ffi'
import { holdEventLoop } from '@shoal/ffi/calls'
import { isLoopDue } from '@shoal/types'

/**
 * A getter of a promise. What it waits for does not keep the process alive, but who asks for it does, until it settles.
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
