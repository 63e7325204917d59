import { GroupStateError } from '@shoal/nccl'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

describe('GroupStateError', () => {
  const error = new GroupStateError('groupEnd', 'there is no group to end')

  itIsAShoalError(error, { name: 'GroupStateError', code: 'SHOAL_GROUP_STATE', api: 'groupEnd' })

  it('names the function that was called in the wrong state', () => {
    expect(error.message).toBe('groupEnd: there is no group to end')
  })
})
