import { hostConvention, putPointer } from '@shoal/ffi/calls'
import { FeatureNotSupportedError } from '@shoal/types'

/**
 * Memory for a struct that a function returns by value. On x86-64 its address is a hidden first argument; AArch64 hands it
 * over in a register that the argument block does not reach.
 * @throws FeatureNotSupportedError on AArch64.
 */
export function hiddenResult(byteLength: number, api: string): Uint8Array {
  if (hostConvention() === 'aapcs64') {
    throw new FeatureNotSupportedError({
      library: 'NVIDIA CUDA runtime',
      feature: api,
      reason: 'its result is a struct by value, which cannot be received on AArch64',
    })
  }
  const result = new Uint8Array(byteLength)
  putPointer(0, result, api, 'result')
  return result
}
