import { StatusError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('StatusError', () => {
  const cause = new RangeError('below')
  const error = new StatusError({
    library: 'NCCL',
    api: 'ncclAllReduce',
    status: 6,
    code: 'ncclRemoteError',
    description: 'remote process exited',
    isSticky: true,
    lastError: 'connection closed by peer',
    libraryVersion: '2.30.7',
    cause,
  })

  itIsAShoalError(error, {
    name: 'StatusError',
    code: 'ncclRemoteError',
    library: 'NCCL',
    api: 'ncclAllReduce',
    status: 6,
    description: 'remote process exited',
    isSticky: true,
    lastError: 'connection closed by peer',
    libraryVersion: '2.30.7',
    cause: { name: 'RangeError', message: 'below' },
  })

  it("names the function, the status and the library's description", () => {
    expect(error.message).toContain('ncclAllReduce failed: ncclRemoteError (6): remote process exited')
    expect(error.message).toContain('NCCL says: connection closed by peer')
    expect(error.message).toContain('sticky')
  })

  it('is short without a description, and not sticky by default', () => {
    const plain = new StatusError({ library: 'CUDA driver', api: 'cuInit', status: 100, code: 'X', description: '' })
    expect(plain.message).toBe('cuInit failed: X (100)')
    expect(plain.isSticky).toBe(false)
  })

  it('keeps its cause', () => {
    expect(error.cause).toBe(cause)
  })
})
