import { closeDescriptor, duplicateDescriptor } from '@shoal/ffi'
import { requireAddress, requireInteger } from '@shoal/types'
import { releaseAfterFailure } from '../../core/lifetime.js'

type Handle = { readonly fd: number } | { readonly win32: { readonly handle: bigint } }

/**
 * Imports an object by descriptor or Windows handle. The driver receives a duplicate of the descriptor, and the
 * original is closed. Otherwise Node would close the number at the end of the worker that opened it, even after the
 * driver has closed it.
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
