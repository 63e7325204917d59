import { requireInteger } from '@shoal/types'
import { socketAddon } from './socketCalls.js'

/**
 * True if nobody reads a pipe any more or the other end of a socket is closed (`poll`).
 *
 * A write would fail then.
 * @throws FeatureNotSupportedError on Windows; AddonLoadError
 */
export function isHungUp(descriptor: number): boolean {
  return socketAddon().isHungUp(requireInteger(descriptor, 'isHungUp', 'descriptor', 0, 2 ** 31 - 1))
}
