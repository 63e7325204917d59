import { BusyError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('BusyError', () => {
  const options = { object: 'Communicator', api: 'Communicator.split', underWay: 'groupOffThread' } as const

  itIsAShoalError(new BusyError(options), { name: 'BusyError', code: 'SHOAL_BUSY', ...options })

  it('names the call under way, and suggests to await it', () => {
    expect(new BusyError(options).message).toBe(
      'Communicator.split: the Communicator is busy with groupOffThread; await groupOffThread first.',
    )
  })

  it('adds another remedy if given', () => {
    expect(new BusyError({ ...options, hint: 'end the group' }).message).toMatch(/; end the group\.$/)
  })
})
