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
