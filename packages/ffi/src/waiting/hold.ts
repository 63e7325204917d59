import type { SystemError } from '@shoal/types'
import { addon } from '../addon/load.js'
import { systemError } from '../systemError.js'

/** A handle on native work that is under way: an empty object, filled when the work starts. */
export interface BackgroundWork {
  /** Lets the process end although the work has not. Idempotent. */
  release?: () => void
}

/** Keeps the event loop alive until the function it returns is called, or `background.release` is. */
export function holdEventLoop(background: BackgroundWork | undefined): () => void {
  const native = addon()
  let isHeld = false
  const release = (): void => {
    if (!isHeld) return
    isHeld = false
    native.unhold()
  }
  if (background !== undefined) background.release = release
  native.hold()
  isHeld = true
  return release
}

/** The error for a thread that the system refused to start. */
export function noMoreThreads(api: string): SystemError {
  return systemError(api, 'pthread_create', 'EAGAIN')
}
