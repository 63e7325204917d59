import { expect, test } from 'vitest'
// Internals that the package does not export, because NCCL itself never returns from most of these cases.
import { Communicator } from '../src/communicator/communicator.js'
import { createLocalRanks, localRanksOf, mergeAlias, rootOf } from '../src/lifetime/localRanks.js'
import { startSoftwareDevice } from './fixtures/device.js'

test('a rank that joined by another name of the same local ranks counts once', () => {
  const joining = localRanksOf('early')
  joining.count += 1
  const grown = createLocalRanks()
  mergeAlias(grown, 'early')
  grown.count += 1
  mergeAlias(grown, 'early')
  expect(rootOf(joining)).toBe(grown)
  expect(localRanksOf('early')).toBe(grown)
  expect(grown.count).toBe(2)
  // A failed rank no longer counts, in whichever set of local ranks it is.
  rootOf(joining).count -= 1
  expect(grown.count).toBe(1)
})

test('a rank still waiting when the call is repeated belongs to the second call', () => {
  const joining = localRanksOf('again')
  joining.count += 1
  const first = createLocalRanks()
  mergeAlias(first, 'again')
  const second = createLocalRanks()
  second.count += 1
  mergeAlias(second, 'again')
  expect(rootOf(joining)).toBe(second)
  expect(rootOf(first)).toBe(second)
  expect(second.count).toBe(2)
})

test('a rank that stopped joining before the others came is not waited for', async () => {
  startSoftwareDevice()
  const [first, second] = (await Communicator.initAll([0, 1])) as [Communicator, Communicator]
  const id = first.createUniqueId()
  const join = (timeout: number) => Communicator.joinGrown({ device: 2, rank: 2, worldSize: 3, id, timeout })
  const localRanks = localRanksOf(String(id))
  const given = join(50)
  expect(localRanks.count).toBe(1)
  await expect(given).rejects.toMatchObject({ code: 'SHOAL_TIMEOUT' })
  expect(localRanks.count).toBe(0)
  await Promise.all([first.abort(), second.abort()])
})
