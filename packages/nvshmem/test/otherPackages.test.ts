// Tests objects of other packages, which are connected to this package only by the protocols.
import { expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'

test('NVSHMEM accepts devices, streams, device and page-locked memory of @shoal/driver', async () => {
  const results = await resultsOf('otherPackages.driver', 2)
  const all = (value: number): number[] => [value, value, value, value]
  for (const [rank, result] of results.entries()) {
    const other = 1 - rank
    expect(result).toEqual({
      filled: all(rank),
      fromDevice: all(other + 10),
      fromHost: all(other + 20),
      fromPeer: all(rank + 20),
      disposed: 'SHOAL_DISPOSED',
    })
  }
})

test('NCCL collectives of @shoal/nccl accept symmetric memory', async () => {
  expect(await resultsOf('otherPackages.nccl', 1)).toEqual([[2, 2, 2, 2, 2, 2, 2, 2]])
})

test('symmetric memory is freed after an off-thread group that uses it has returned', async () => {
  const environment = { SHOAL_SIM_FAULT: 'slow call=ncclAllReduce ms=300' }
  expect(await resultsOf('otherPackages.disposedInGroup', 1, { environment })).toEqual([['group', 'memory']])
})

const moving = ['put', 'putNonBlocking', 'putOnStream', 'putNonBlockingOnStream', 'putStrided', 'putStridedOnStream']
const calls = [
  ...moving,
  ...moving.map((name) => name.replace('put', 'get')),
  ...['putSignalOnStream', 'putSignalNonBlockingOnStream', 'copyFrom', 'copyTo'],
  ...['putSync', 'getSync', 'putStridedSync', 'getStridedSync', 'copyFromSync', 'copyToSync'],
]

test('transfers and copies wait for the pending producer of their memory, by stream or by blocking', async () => {
  expect(await resultsOf('otherPackages.producerStreams', 1, { options: { calls } })).toEqual([{}])
})

test('waits run after the producers of their values and of ignored elements', async () => {
  expect(await resultsOf('otherPackages.waitProducers', 1)).toEqual([[]])
})

test('copies and collectives of other packages wait for the stream that symmetric memory names', async () => {
  const right = { isEarly: false, right: true }
  const all = { copy: right, view: right, nccl: right, broadcast: right }
  expect(await resultsOf('otherPackages.handedOver', 1)).toEqual([all])
})

test('an invalid producer stream is refused, and a wait for a producer can be aborted', async () => {
  const [{ gone, late, after }] = (await resultsOf('otherPackages.producerRefused', 1)) as [
    { gone: string[]; late: string; after: number[] },
  ]
  for (const words of gone) expect(words).toMatch(/^StatusError: cuEventRecord/)
  expect(late).toMatch(/^TimeoutError: .*Session\.put/)
  expect(after).toEqual([1, 2, 3, 4])
})
