import { releaseAfterFailure } from '../lifetime.js'

let captures = 0
/** What is given back when the capture has ended. */
const delayed: { readonly what: string; readonly release: () => void }[] = []

/** A stream of this thread is captured into a graph from now on. */
export function startCapturing(): void {
  captures += 1
}

/** What {@link startCapturing} said has ended. */
export function endCapturing(): void {
  captures -= 1
  if (captures > 0) return
  for (const { what, release } of delayed.splice(0)) releaseAfterFailure(what, release)
}

/**
 * Gives back what the driver waits for the device for: now, or once this thread captures no more. The driver would refuse it,
 * and the capture would come to nothing.
 */
export function afterCapture(what: string, release: () => void): void {
  if (captures === 0) release()
  else delayed.push({ what, release })
}

/** Whether this thread captures: what it queues runs later, and any number of times. */
export function isCapturing(): boolean {
  return captures > 0
}

/**
 * For what works with memory that is not there at a later launch.
 * @throws TypeError
 */
export function refuseInCapture(api: string, what: string): never {
  throw new TypeError(
    `${api}: ${what} cannot be captured into a graph: it would not be there at a launch; use a PinnedBuffer`,
  )
}
