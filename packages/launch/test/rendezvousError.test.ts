import { RendezvousError } from '@shoal/launch'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

describe('RendezvousError', () => {
  const error = new RendezvousError('rank 1 has joined already')

  itIsAShoalError(error, { name: 'RendezvousError', code: 'SHOAL_RENDEZVOUS' })

  it('keeps the given message', () => {
    expect(error.message).toBe('rank 1 has joined already')
  })
})
