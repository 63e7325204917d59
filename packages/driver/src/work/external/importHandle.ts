import { closeDescriptor, duplicateDescriptor } from '@shoal/ffi'
import { requireAddress, requireInteger } from '@shoal/types'
import { releaseAfterFailure } from '../../core/lifetime.js'

type Handle = { readonly fd: number } | { readonly win32: { readonly handle: bigint } }

/**
 * Imports by a handle as C has it: a descriptor, or a handle of Windows. The driver gets a duplicate of the descriptor,
 * which is closed: Node would close the number at the end of a worker that opened it, whatever the driver had done with
 * it.
 * @throws TypeError, RangeError; SystemError for a descriptor that is not open
 */
export function importHandle<T>(type: string, handle: number | bigint, api: string, take: (handle: Handle) => T): T {
  if (!type.endsWith('-fd')) return take({ win32: { handle: requireAddress(handle, api, 'handle') } })
  const descriptor = requireInteger(handle, api, 'handle', 0, 0x7fff_ffff)
  const duplicate = duplicateDescriptor(descriptor, api)
  let closed = duplicate
  try {
    const taken = take({ fd: duplicate })
    closed = descriptor
    return taken
  } finally {
    releaseAfterFailure(api, () => closeDescriptor(closed))
  }
}
