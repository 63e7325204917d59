import { RendezvousLostError } from '@shoal/launch'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

describe('RendezvousLostError', () => {
  const error = new RendezvousLostError('the rendezvous ended')

  itIsAShoalError(error, { name: 'RendezvousLostError', code: 'SHOAL_RENDEZVOUS_LOST' })

  it('keeps the given message', () => {
    expect(error.message).toBe('the rendezvous ended')
  })
})
