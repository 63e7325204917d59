import { LaunchEnvironmentError } from '@shoal/launch'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

describe('LaunchEnvironmentError', () => {
  const error = new LaunchEnvironmentError('RANK is 4 and WORLD_SIZE is 2')

  itIsAShoalError(error, { name: 'LaunchEnvironmentError', code: 'SHOAL_LAUNCH_ENVIRONMENT' })

  it('keeps the given message', () => {
    expect(error.message).toBe('RANK is 4 and WORLD_SIZE is 2')
  })
})
