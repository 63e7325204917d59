import { type BatchedCopy, type PreparedCopies, prepareCopies as prepare } from '@shoal/driver/shared'
import { type DeviceOption, onlyOwner } from '../device/currentDevice.js'

/**
 * Checks and packs many copies, to queue together with `launch({ stream })` (`cuMemcpyBatchAsync`).
 *
 * Streams must belong to the current or the given device.
 * @throws TypeError, RangeError for copies whose ends differ in length; DisposedError
 */
export function prepareCopies(copies: readonly BatchedCopy[], options: DeviceOption = {}): PreparedCopies {
  return prepare(onlyOwner(options, 'prepareCopies'), copies)
}
