import { TimeoutError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('TimeoutError', () => {
  itIsAShoalError(new TimeoutError({ operation: 'stream.synchronize', timeout: 250 }), {
    name: 'TimeoutError',
    code: 'SHOAL_TIMEOUT',
    operation: 'stream.synchronize',
    timeout: 250,
  })

  it('names the awaited operation and the timeout, if known', () => {
    expect(new TimeoutError({ operation: 'copy', timeout: 250 }).message).toMatch(/^copy did not end within 250 ms\. /)
    expect(new TimeoutError({ operation: 'receive', timeout: 5, ofDevice: false }).message).toBe(
      'receive did not end within 5 ms.',
    )
    expect(new TimeoutError('copy').message).toContain('copy did not end within its time limit')
    expect(new TimeoutError().message).toContain('The wait did not end within its time limit')
  })
})
