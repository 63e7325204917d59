import { RanksLostError } from '@shoal/launch'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

describe('RanksLostError', () => {
  itIsAShoalError(new RanksLostError([1, 3], 'lost', "barrier 'start'"), {
    name: 'RanksLostError',
    code: 'SHOAL_RANKS_LOST',
    ranks: [1, 3],
    operation: "barrier 'start'",
  })

  it('names the ranks that are lost or left, and the call that cannot complete', () => {
    expect(new RanksLostError([1]).message).toBe('rank 1 was lost')
    expect(new RanksLostError([1, 3]).message).toBe('ranks 1 and 3 were lost')
    expect(new RanksLostError([2], 'left').message).toBe('rank 2 left the job')
    expect(new RanksLostError([2], 'lost', 'gather').message).toBe('gather cannot end: rank 2 was lost')
  })
})
