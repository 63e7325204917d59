import { CommunicatorStateError } from '@shoal/nccl'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

const options = { operation: 'grow', state: 'suspended', rank: 1, worldSize: 4, deviceOrdinal: 2 } as const

describe('CommunicatorStateError', () => {
  itIsAShoalError(new CommunicatorStateError(options), {
    name: 'CommunicatorStateError',
    code: 'SHOAL_COMMUNICATOR_STATE',
    ...options,
  })

  it('names the refused call, the state and a remedy', () => {
    expect(new CommunicatorStateError(options).message).toBe(
      'Communicator.grow: rank 1 of 4 (device 2) is suspended. resume() it first.',
    )
    expect(new CommunicatorStateError({ ...options, state: 'revoked' }).message).toContain(
      'Only split, shrink, destroy',
    )
    expect(new CommunicatorStateError({ ...options, state: 'unconnected' }).message).toContain('into one group()')
  })

  it('prints the name of a C function unchanged', () => {
    expect(new CommunicatorStateError({ ...options, operation: 'ncclAllReduce' }).message).toMatch(/^ncclAllReduce: /)
  })
})
