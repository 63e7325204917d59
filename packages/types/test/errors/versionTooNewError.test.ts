import { VersionTooNewError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('VersionTooNewError', () => {
  const error = new VersionTooNewError({
    library: 'CUDA runtime',
    api: 'cudaMemAdvise',
    known: '13.0',
    installed: '14.1',
  })

  itIsAShoalError(error, {
    name: 'VersionTooNewError',
    code: 'SHOAL_VERSION_TOO_NEW',
    library: 'CUDA runtime',
    api: 'cudaMemAdvise',
    known: '13.0',
    installed: '14.1',
  })

  it('names the function, the newest known version and the installed version', () => {
    for (const words of ['cudaMemAdvise', '13.0', '14.1']) expect(error.message).toContain(words)
  })
})
