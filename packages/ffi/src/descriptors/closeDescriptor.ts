import { requireInteger } from '@shoal/types'
import { requireDone, socketAddon } from './socketCalls.js'

/**
 * Closes a descriptor (`close`). Node's own function warns in a worker of a descriptor that Node has not opened there, as
 * those that came from a driver or through a socket. @throws SystemError with `code`, such as `'EBADF'`.
 */
export function closeDescriptor(descriptor: number): void {
  requireInteger(descriptor, 'closeDescriptor', 'descriptor', 0, 2 ** 31 - 1)
  requireDone(socketAddon().closeDescriptor(descriptor), 'closeDescriptor', 'close')
}
