import { RendezvousTimeoutError } from '@shoal/launch'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

describe('RendezvousTimeoutError', () => {
  itIsAShoalError(new RendezvousTimeoutError("barrier 'start'", 250, [2, 3]), {
    name: 'RendezvousTimeoutError',
    code: 'SHOAL_RENDEZVOUS_TIMEOUT',
    operation: "barrier 'start'",
    timeout: 250,
    missing: [2, 3],
  })

  it('names the operation, the timeout and the missing ranks', () => {
    const messageOf = (...missing: number[]): string => new RendezvousTimeoutError('join', 250, missing).message
    expect(messageOf(2)).toBe('join did not end within 250 ms: rank 2 did not come')
    expect(messageOf(1, 2, 5)).toBe('join did not end within 250 ms: ranks 1, 2 and 5 did not come')
  })

  it('omits unknown ranks, and appends details', () => {
    expect(new RendezvousTimeoutError('get', 250, []).message).toBe('get did not end within 250 ms')
    expect(new RendezvousTimeoutError('get', 250, [], 'Nobody serves it').message).toBe(
      'get did not end within 250 ms. Nobody serves it',
    )
  })

  it('abbreviates long lists', () => {
    const missing = Array.from({ length: 20 }, (_, rank) => rank)
    expect(new RendezvousTimeoutError('join', 1, missing).message).toMatch(/ranks 0, 1, .* 15 and 4 more did not come$/)
  })
})
