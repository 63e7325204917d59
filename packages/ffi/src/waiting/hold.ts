import type { SystemError } from '@shoal/types'
import { addon } from '../addon/load.js'
import { systemError } from '../systemError.js'

/** Handle on native work in flight: an empty object, filled when the work starts. */
export interface BackgroundWork {
  /** Lets the process end before the work completes. Idempotent. */
  release?: () => void
}

/** Keeps the event loop alive until the returned function or `background.release` is called. */
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

/** Returns the error for a thread that the system refused to start. */
export function noMoreThreads(api: string): SystemError {
  return systemError(api, 'pthread_create', 'EAGAIN')
}
