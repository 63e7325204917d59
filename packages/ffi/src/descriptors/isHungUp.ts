import { requireInteger } from '@shoal/types'
import { socketAddon } from './socketCalls.js'

/**
 * True if the readers of a pipe or the peer of a socket are gone (`poll`).
 *
 * A write would fail then.
 * @throws FeatureNotSupportedError on Windows; AddonLoadError
 */
export function isHungUp(descriptor: number): boolean {
  return socketAddon().isHungUp(requireInteger(descriptor, 'isHungUp', 'descriptor', 0, 2 ** 31 - 1))
}
