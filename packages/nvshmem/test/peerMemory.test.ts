import { inspect } from 'node:util'
import { PeerMemory } from '@shoal/nvshmem'
import { DisposedError, memoryProtocol } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'
import { onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()

describe('PeerMemory', () => {
  test('is the memory of another PE: loads and stores need no NVSHMEM call', async () => {
    const results = await resultsOf('heap.peers', 3)
    for (const [rank, result] of results.entries()) {
      const before = (rank + 2) % 3
      expect(result).toMatchObject({
        contents: [0, before + 10, before + 20],
        isOwn: true,
        pe: (rank + 1) % 3,
        length: 2,
      })
    }
  })

  test('has type, length and address of the buffer, and answers the memory protocol', async () => {
    const buffer = await pe.session.allocate('f64', 4)
    const peer = await buffer.peer(0)
    expect(peer).toBeInstanceOf(PeerMemory)
    expect(peer).toMatchObject({ pe: 0, dtype: 'f64', length: 4, byteLength: 32, address: buffer.address })
    expect(peer?.[memoryProtocol]).toEqual(buffer[memoryProtocol])
    expect(inspect(peer)).toBe("PeerMemory { pe: 0, dtype: 'f64', length: 4 }")
    await buffer.dispose()
    expect(() => peer?.address).toThrow(DisposedError)
    expect(() => peer?.[memoryProtocol]).toThrow(DisposedError)
    expect(inspect(peer)).toBe("PeerMemory { pe: 0, dtype: 'f64', length: 4, disposed: true }")
  })

  refuses(pe, [
    [
      'a PE that is not there',
      async () => (await pe.session.allocate('f32', 1)).peer(1),
      'SymmetricBuffer.peer: pe must be an integer from 0 to 0, not 1',
    ],
  ])
})
