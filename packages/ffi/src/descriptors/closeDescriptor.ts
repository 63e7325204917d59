import { closeSync } from 'node:fs'
import { requireInteger } from '@shoal/types'
import { addon } from '../addon/load.js'
import { isMainThread } from '../mainThread.js'
import { systemError } from '../systemError.js'
import { requireDone, socketAddon } from './socketCalls.js'

/**
 * Closes a descriptor of any origin (`close`): Node, a driver or a socket.
 *
 * @throws SystemError with `code`, such as `'EBADF'`.
 */
export function closeDescriptor(descriptor: number): void {
  const api = 'closeDescriptor'
  requireInteger(descriptor, api, 'descriptor', 0, 2 ** 31 - 1)
  if (isMainThread()) requireDone(socketAddon().closeDescriptor(descriptor), api, 'close')
  else closeInWorker(descriptor, api)
}

/**
 * Closes with `node:fs`, because a worker that ends closes the descriptors that `node:fs` opened there.
 *
 * Without this it would close a number that may already belong to another file. For a descriptor of other origin
 * `node:fs` warns but closes it.
 */
function closeInWorker(descriptor: number, api: string): void {
  addon().closeAtEnd?.(descriptor, false)
  const { emitWarning } = process
  process.emitWarning = () => undefined
  try {
    closeSync(descriptor)
  } catch (error) {
    throw systemError(api, 'close', (error as NodeJS.ErrnoException).code as string)
  } finally {
    process.emitWarning = emitWarning
  }
}

/** Closes a descriptor when the worker ends, unless {@link closeDescriptor} was called before. */
export function closeAtThreadEnd(descriptor: number): void {
  if (!isMainThread()) addon().closeAtEnd?.(descriptor, true)
}

/** Duplicates a descriptor (`fcntl`); other programs do not inherit it. @throws SystemError with `code`. */
export function duplicateDescriptor(descriptor: number, api = 'duplicateDescriptor'): number {
  requireInteger(descriptor, api, 'descriptor', 0, 2 ** 31 - 1)
  return requireDone(socketAddon().duplicateDescriptor(descriptor), api, 'fcntl')
}

const kindsOfDescriptors = ['other', 'file', 'folder', 'socket', 'pipe'] as const

/** Returns the kind of a descriptor of any origin (`fstat`). @throws SystemError with `code`, such as `'EBADF'`. */
export function descriptorKind(descriptor: number, api = 'descriptorKind'): (typeof kindsOfDescriptors)[number] {
  requireInteger(descriptor, api, 'descriptor', 0, 2 ** 31 - 1)
  return kindsOfDescriptors[requireDone(socketAddon().descriptorKind(descriptor), api, 'fstat')] ?? 'other'
}
