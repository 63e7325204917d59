import { CommunicatorAbortedError } from '@shoal/nccl'
import { StatusError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

const options = { operation: 'synchronize', reason: 'abort', rank: 1, worldSize: 4, deviceOrdinal: 2 } as const

describe('CommunicatorAbortedError', () => {
  itIsAShoalError(new CommunicatorAbortedError({ ...options, lastOperation: 'allReduce', lostRanks: [3] }), {
    name: 'CommunicatorAbortedError',
    code: 'SHOAL_COMMUNICATOR_ABORTED',
    ...options,
    lastOperation: 'allReduce',
    lostRanks: [3],
  })

  it('names the operation, the ranks, the reason and a remedy', () => {
    expect(new CommunicatorAbortedError(options).message).toBe(
      'Communicator.synchronize on rank 1 of 4 (device 2), which depends on ranks 0, 2, 3, did not complete: ' +
        'the communicator was aborted because abort() was called. ' +
        'Results of its operations are not valid; make a new communicator from the ranks that are left.',
    )
  })

  it('names the last queued operation, the lost ranks and the cause', () => {
    const { message } = new CommunicatorAbortedError({
      ...options,
      reason: 'signal',
      lastOperation: 'allReduce',
      lostRanks: [0, 3],
      cause: new Error('rank 3 was lost.'),
    })
    expect(message).toContain(', after allReduce, which')
    expect(message).toContain('because its signal fired: rank 3 was lost. Lost: ranks 0, 3.')
  })

  it('quotes NCCL if NCCL reported the error', () => {
    const cause = new StatusError({
      library: 'NCCL',
      api: 'ncclCommGetAsyncError',
      status: 6,
      code: 'ncclRemoteError',
      description: 'remote process exited',
      lastError: 'connection closed by peer',
    })
    const { message } = new CommunicatorAbortedError({ ...options, reason: 'async-error', cause })
    expect(message).toMatch(/because NCCL reported an error: .*\(NCCL says: connection closed by peer\)\. Results/)
  })

  it('abbreviates the ranks of a large job, and mentions no other ranks in a job of one', () => {
    const messageOf = (worldSize: number): string =>
      new CommunicatorAbortedError({ ...options, rank: 0, worldSize }).message
    expect(messageOf(1)).toContain('which depends on no other rank,')
    expect(messageOf(64)).toContain('which depends on the 63 other ranks,')
  })

  it('calls a revoked communicator interrupted', () => {
    const { message } = new CommunicatorAbortedError({ ...options, reason: 'revoke' })
    expect(message).toContain('the communicator was interrupted because it was revoked.')
  })
})
