import { SessionExistsError } from '@shoal/nvshmem'
import { describe } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

describe('SessionExistsError', () => {
  itIsAShoalError(new SessionExistsError('Session.init: NVSHMEM runs'), {
    name: 'SessionExistsError',
    code: 'SHOAL_NVSHMEM_SESSION_EXISTS',
  })
})
