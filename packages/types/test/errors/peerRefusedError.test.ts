import { PeerRefusedError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('PeerRefusedError', () => {
  const options = { api: 'DescriptorServer.accept', user: 1001, users: [0, 1000] } as const
  const error = new PeerRefusedError(options)

  itIsAShoalError(error, { name: 'PeerRefusedError', code: 'SHOAL_PEER_REFUSED', ...options })

  it('names the user of the process, the allowed users, and how to allow others', () => {
    expect(error.message).toBe(
      'DescriptorServer.accept: the process at the other end belongs to user 1001, and only 0, 1000 may connect; ' +
        'add user ids with the option users',
    )
  })
})
