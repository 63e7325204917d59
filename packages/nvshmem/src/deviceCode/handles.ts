import { propertyOf, wrongType } from '@shoal/types'

/** Returns the handle of a driver object, or a bare handle. @throws TypeError */
export function handleOf(object: unknown, api: string, parameter: string, type: string): bigint {
  const handle = typeof object === 'object' ? propertyOf(object, 'handle') : object
  if (typeof handle === 'bigint' && handle > 0n && BigInt.asUintN(64, handle) === handle) return handle
  throw wrongType(api, parameter, `an object with a handle (a ${type}), or the handle`, object)
}
