import { FeatureNotSupportedError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('FeatureNotSupportedError', () => {
  const error = new FeatureNotSupportedError({
    library: 'CUDA driver',
    api: 'multicast objects',
    reason: 'device 0 has none.',
  })

  itIsAShoalError(error, {
    name: 'FeatureNotSupportedError',
    code: 'SHOAL_FEATURE_NOT_SUPPORTED',
    library: 'CUDA driver',
    api: 'multicast objects',
    reason: 'device 0 has none.',
  })

  it('names the unsupported feature and the reason', () => {
    for (const words of ['multicast objects', 'device 0 has none.']) expect(error.message).toContain(words)
  })
})
