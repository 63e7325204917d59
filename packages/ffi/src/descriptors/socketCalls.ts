import { getSystemErrorName } from 'node:util'
import { FeatureNotSupportedError } from '@shoal/types'
import type { Addon } from '../addon/contract.js'
import { addon } from '../addon/load.js'
import { systemError } from '../systemError.js'

/** Returns the addon, if it supports Unix sockets. @throws FeatureNotSupportedError on Windows. */
export function socketAddon(): Addon & Required<Pick<Addon, 'socketPair'>> {
  const native = addon()
  if (native.socketPair === undefined) {
    throw new FeatureNotSupportedError({
      library: '@shoal/ffi',
      api: 'sockets that carry file descriptors',
      reason: `${process.platform} has no file descriptors to pass; duplicate Win32 handles instead`,
    })
  }
  return native as Addon & Required<Pick<Addon, 'socketPair'>>
}

/** Returns the result of a socket call. @throws SystemError if it is an error */
export function requireDone(result: number, api: string, syscall: string, path?: string): number {
  if (result >= 0) return result
  throw systemError(api, syscall, getSystemErrorName(result), path)
}

/** True if a socket call must be repeated when the socket is ready. */
export function mustWait(result: number): boolean {
  const name = result < 0 ? getSystemErrorName(result) : ''
  return name === 'EAGAIN' || name === 'EINTR' || name === 'EWOULDBLOCK'
}
