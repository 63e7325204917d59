import { type BatchedCopy, type PreparedCopies, prepareCopies as prepare } from '@shoal/driver/shared'
import { type DeviceOption, onlyOwner } from '../device/currentDevice.js'

/**
 * Checks and packs many copies, to be queued together by `launch({ stream })`, on streams of the current device or of
 * the one named (`cuMemcpyBatchAsync`).
 * @throws TypeError, RangeError for copies whose ends are not equally long; DisposedError
 */
export function prepareCopies(copies: readonly BatchedCopy[], options: DeviceOption = {}): PreparedCopies {
  return prepare(onlyOwner(options, 'prepareCopies'), copies)
}
