import { closeSync } from 'node:fs'
import { requireInteger } from '@shoal/types'
import { addon } from '../addon/load.js'
import { isMainThread } from '../mainThread.js'
import { systemError } from '../systemError.js'
import { requireDone, socketAddon } from './socketCalls.js'

/**
 * Closes a descriptor (`close`), one that Node has opened as well as one that came from a driver or through a socket.
 * @throws SystemError with `code`, such as `'EBADF'`.
 */
export function closeDescriptor(descriptor: number): void {
  const api = 'closeDescriptor'
  requireInteger(descriptor, api, 'descriptor', 0, 2 ** 31 - 1)
  if (isMainThread()) requireDone(socketAddon().closeDescriptor(descriptor), api, 'close')
  else closeInWorker(descriptor, api)
}

/**
 * A worker that ends closes what `node:fs` opened there and has not closed: by then the number may be another file's.
 * Of a descriptor from elsewhere `node:fs` warns, and closes it all the same.
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

/** The end of a worker closes it, unless {@link closeDescriptor} has done so before. */
export function closeAtThreadEnd(descriptor: number): void {
  if (!isMainThread()) addon().closeAtEnd?.(descriptor, true)
}

/** Another descriptor of the same file (`fcntl`), not inherited by other programs. @throws SystemError with `code`. */
export function duplicateDescriptor(descriptor: number, api = 'duplicateDescriptor'): number {
  requireInteger(descriptor, api, 'descriptor', 0, 2 ** 31 - 1)
  return requireDone(socketAddon().duplicateDescriptor(descriptor), api, 'fcntl')
}

const kindsOfDescriptors = ['other', 'file', 'folder', 'socket', 'pipe'] as const

/** What a descriptor is of, whoever opened it (`fstat`). @throws SystemError with `code`, such as `'EBADF'`. */
export function descriptorKind(descriptor: number, api = 'descriptorKind'): (typeof kindsOfDescriptors)[number] {
  requireInteger(descriptor, api, 'descriptor', 0, 2 ** 31 - 1)
  return kindsOfDescriptors[requireDone(socketAddon().descriptorKind(descriptor), api, 'fstat')] ?? 'other'
}
