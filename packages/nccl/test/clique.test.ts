import { expect, test } from 'vitest'
// What the package does not export: NCCL itself never comes back from most of what these are about.
import { Communicator } from '../src/communicator/communicator.js'
import { alsoKnownAs, cliqueOf, makeClique, wholeOf } from '../src/group/clique.js'
import { startSoftwareDevice } from './fixtures/device.js'

test('who came by the other name belongs to the clique, and counts once', () => {
  const joining = cliqueOf('early')
  joining.members += 1
  const grown = makeClique()
  alsoKnownAs(grown, 'early')
  grown.members += 1
  alsoKnownAs(grown, 'early')
  expect(wholeOf(joining)).toBe(grown)
  expect(cliqueOf('early')).toBe(grown)
  expect(grown.members).toBe(2)
  // One that fails is counted no more, whichever clique it came to.
  wholeOf(joining).members -= 1
  expect(grown.members).toBe(1)
})

test('who still waits when the call is made once more belongs to the second', () => {
  const joining = cliqueOf('again')
  joining.members += 1
  const first = makeClique()
  alsoKnownAs(first, 'again')
  const second = makeClique()
  second.members += 1
  alsoKnownAs(second, 'again')
  expect(wholeOf(joining)).toBe(second)
  expect(wholeOf(first)).toBe(second)
  expect(second.members).toBe(2)
})

test('a rank that gave up joining before the others came is not waited for', async () => {
  startSoftwareDevice()
  const [first, second] = (await Communicator.initAll([0, 1])) as [Communicator, Communicator]
  const id = first.createUniqueId()
  const join = (timeout: number) => Communicator.joinGrown({ device: 2, rank: 2, worldSize: 3, id, timeout })
  const clique = cliqueOf(String(id))
  const given = join(50)
  expect(clique.members).toBe(1)
  await expect(given).rejects.toMatchObject({ code: 'SHOAL_TIMEOUT' })
  expect(clique.members).toBe(0)
  await Promise.all([first.abort(), second.abort()])
})
