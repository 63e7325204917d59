import { AlreadyInUseError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('AlreadyInUseError', () => {
  const error = new AlreadyInUseError({ api: 'setPath', object: 'NCCL', reason: 'NCCL is loaded already' })

  itIsAShoalError(error, {
    name: 'AlreadyInUseError',
    code: 'SHOAL_ALREADY_IN_USE',
    api: 'setPath',
    object: 'NCCL',
  })

  it('names the function that was called too late, and the reason', () => {
    expect(error.message).toBe('setPath: NCCL is loaded already')
  })
})
