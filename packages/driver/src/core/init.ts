import { requireInteger } from '@shoal/types'
import { driverLibrary } from './calls/driverLibrary.js'
import type { StatusText } from './errors.js'

/**
 * Loads the driver and starts it (`cuInit`). Every object of this package does so on its own; call it to fail early.
 * @throws LibraryNotFoundError when there is no driver, StatusError when it does not start.
 */
export function initialize(): void {
  driverLibrary.start()
}

/**
 * What the driver calls a status and says of it, without an error (`cuGetErrorName`, `cuGetErrorString`).
 * @throws TypeError, RangeError
 */
export function statusText(status: number): StatusText {
  return driverLibrary.describeStatus(requireInteger(status, 'statusText', 'status', 0, 0x7fff_ffff))
}
