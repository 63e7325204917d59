import { requireInteger } from '@shoal/types'
import { driverLibrary } from './calls/driverLibrary.js'
import type { StatusText } from './errors.js'

/**
 * Loads and initializes the driver (`cuInit`). The first use of this package does this by itself; call this function to
 * get errors early.
 * @throws LibraryNotFoundError when there is no driver, StatusError when initialization fails
 */
export function initialize(): void {
  driverLibrary.start()
}

/**
 * Returns the driver's name and description of a status (`cuGetErrorName`, `cuGetErrorString`).
 * @throws TypeError, RangeError
 */
export function statusText(status: number): StatusText {
  return driverLibrary.describeStatus(requireInteger(status, 'statusText', 'status', 0, 0x7fff_ffff))
}
