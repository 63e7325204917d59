import { startDriver, watchForEnd } from '@shoal/cuda-base'
import { closeContextsOfThread } from './context.js'

export { driverVersion } from '@shoal/cuda-base'

let isInitialized = false

/**
 * Loads the driver and initialises it. Every object of this package does so on its own; call it to fail early.
 * @throws LibraryNotFoundError when there is no driver, StatusError when it does not start (`cuInit`).
 */
export function initialize(): void {
  if (isInitialized) return
  startDriver()
  watchForEnd(closeContextsOfThread)
  isInitialized = true
}
