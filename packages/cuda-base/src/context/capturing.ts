let captures = 0

/** A stream of this thread is captured into a graph from now on. */
export function startCapturing(): void {
  captures += 1
}

/** What {@link startCapturing} said has ended. */
export function endCapturing(): void {
  captures -= 1
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
