import { driverLibrary } from '@shoal/cuda-base'

/**
 * Loads the driver and starts it (`cuInit`). Every object of this package does so on its own; call it to fail early.
 * @throws LibraryNotFoundError when there is no driver, StatusError when it does not start.
 */
export function initialize(): void {
  driverLibrary.start()
}
