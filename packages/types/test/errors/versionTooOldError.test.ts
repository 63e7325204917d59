import { VersionTooOldError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('VersionTooOldError', () => {
  const error = new VersionTooOldError({ library: 'NCCL', api: 'ncclCommGrow', since: '2.29.0', installed: '2.28.9' })

  itIsAShoalError(error, {
    name: 'VersionTooOldError',
    code: 'SHOAL_VERSION_TOO_OLD',
    library: 'NCCL',
    api: 'ncclCommGrow',
    since: '2.29.0',
    installed: '2.28.9',
  })

  it('names the function, its first version and the installed version', () => {
    for (const words of ['ncclCommGrow', '2.29.0', '2.28.9']) expect(error.message).toContain(words)
  })
})
