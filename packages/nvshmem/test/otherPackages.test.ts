// What other packages make, and they and this one know of each other by the protocols alone.
import { expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'

test('devices, streams, device and page-locked memory of @shoal/driver', async () => {
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

test('symmetric memory in a collective of @shoal/nccl', async () => {
  expect(await resultsOf('otherPackages.nccl', 1)).toEqual([[2, 2, 2, 2, 2, 2, 2, 2]])
})

test('symmetric memory is given back once a group off the thread that works with it has returned', async () => {
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

test('memory whose producer is still at work: transfers and copies come behind it, by stream or by waiting', async () => {
  expect(await resultsOf('otherPackages.producerStreams', 1, { options: { calls } })).toEqual([{}])
})

test('waits come behind the producers of their values and of what they ignore', async () => {
  expect(await resultsOf('otherPackages.waitProducers', 1)).toEqual([[]])
})

test('symmetric memory handed over behind a stream: copies and collectives of others come behind that', async () => {
  const right = { isEarly: false, right: true }
  const all = { copy: right, view: right, nccl: right, broadcast: right }
  expect(await resultsOf('otherPackages.handedOver', 1)).toEqual([all])
})

test('a stream of a producer that is none is refused; a wait for a producer can be given up', async () => {
  const [{ gone, late, after }] = (await resultsOf('otherPackages.producerRefused', 1)) as [
    { gone: string[]; late: string; after: number[] },
  ]
  for (const words of gone) expect(words).toMatch(/^StatusError: cuEventRecord/)
  expect(late).toMatch(/^TimeoutError: .*Session\.put/)
  expect(after).toEqual([1, 2, 3, 4])
})
