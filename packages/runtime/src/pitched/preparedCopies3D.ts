import { type BatchedCopy3D, prepareCopies3D as prepare } from '@shoal/driver/memory'
import type { PreparedCopies } from '@shoal/driver/shared'
import { type DeviceOption, onlyOwner } from '../device/currentDevice.js'

/**
 * Checks and packs many copies of rows and slices, to queue together (`cuMemcpy3DBatchAsync`).
 *
 * Queue them with `launch({ stream })` on streams of the current or the given device.
 * @throws TypeError, RangeError for ends that do not fit; DisposedError
 */
export function prepareCopies3D(copies: readonly BatchedCopy3D[], options: DeviceOption = {}): PreparedCopies {
  return prepare(onlyOwner(options, 'prepareCopies3D'), copies)
}
