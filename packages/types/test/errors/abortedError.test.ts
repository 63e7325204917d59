import { AbortedError, DisposedError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('AbortedError', () => {
  itIsAShoalError(new AbortedError({ operation: 'stream.synchronize', cause: 'user left' }), {
    name: 'AbortedError',
    code: 'SHOAL_ABORTED',
    operation: 'stream.synchronize',
    cause: 'user left',
  })

  it('names the aborted operation, if known', () => {
    expect(new AbortedError('copy').message).toBe(
      'copy was aborted by its signal. Work already queued on the GPU continues.',
    )
    expect(new AbortedError({ operation: 'receive', ofDevice: false }).message).toBe(
      'receive was aborted by its signal.',
    )
    expect(new AbortedError().message).toContain('The wait was aborted')
  })

  it('includes the reason of the signal, except for the default reason', () => {
    const why = (cause: unknown) => new AbortedError({ operation: 'copy', cause }).message
    expect(why(new Error('rank 3 was lost.'))).toMatch(/^copy was aborted by its signal: rank 3 was lost\. Work/)
    expect(why('enough')).toMatch(/^copy was aborted by its signal: enough\. Work/)
    for (const plain of [undefined, 7, AbortSignal.abort().reason])
      expect(why(plain)).toMatch(/^copy was aborted by its signal\. Work/)
  })

  it('accepts a reason whose message is not text', () => {
    for (const message of [5, Symbol('why'), null, { toString: 1 }]) {
      const cause = Object.assign(new Error('x'), { message })
      expect(new AbortedError({ operation: 'f', cause }).message).toMatch(/^f was aborted by its signal\. Work/)
    }
  })

  it('keeps an error of Shoal as its cause, with its fields', () => {
    const outer = new AbortedError({ cause: new DisposedError('Event') })
    expect(outer.toJSON()).toMatchObject({ cause: { code: 'SHOAL_DISPOSED', object: 'Event' } })
  })
})
