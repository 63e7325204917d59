import { SessionStuckError } from '@shoal/nvshmem'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

describe('SessionStuckError', () => {
  const cause = new Error('late')
  const error = new SessionStuckError('Session.put', 'Session.barrierAll', cause)

  itIsAShoalError(error, {
    name: 'SessionStuckError',
    code: 'SHOAL_NVSHMEM_STUCK',
    operation: 'Session.put',
    waitingFor: 'Session.barrierAll',
    cause: { name: 'Error', message: 'late' },
  })

  it('names the abandoned call and a remedy', () => {
    expect(error.message).toMatch(/Session.barrierAll was given up .* end this process, or wait for the call to return/)
    expect(error.cause).toBe(cause)
  })
})
