import { chownSync, lstatSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { bootstrap } from '@shoal/launch'
import { RendezvousServer } from '@shoal/launch/server'
import { PeerRefusedError } from '@shoal/types'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { afterThisTest, serve } from './support/jobs.js'

const scratch = scratchFolder()
const otherUser = 54_321

async function serveAtFile() {
  const path = join(mkdtempSync(join(scratch, 'unix-')), 'socket')
  const before = process.umask(0)
  afterThisTest(() => void process.umask(before))
  return { path, rendezvous: await serve(2, { address: { kind: 'unix', path } }) }
}

test('the socket file is accessible to this user only, whatever the umask', async () => {
  const { path, rendezvous } = await serveAtFile()
  expect(lstatSync(path).mode & 0o777).toBe(0o600)
  const jobs = await Promise.all([rendezvous.join(0), rendezvous.join(1)])
  await Promise.all(jobs.map((job) => job.barrier('here')))
})

test('a socket file of another user is refused at once, unless that user is listed', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only the superuser can give a file to another user')
  const { path, rendezvous } = await serveAtFile()
  chownSync(path, otherUser, otherUser)
  const error = await bootstrap({ environment: rendezvous.environment(0) }).catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(PeerRefusedError)
  expect(error).toMatchObject({ code: 'SHOAL_PEER_REFUSED', api: 'bootstrap', user: otherUser, users: [0] })
  const users = [otherUser]
  const jobs = await Promise.all([rendezvous.join(0, { users }), rendezvous.join(1, { users })])
  expect(jobs.map(({ rank }) => rank)).toEqual([0, 1])
})

test('ranks wait for a socket file that does not exist yet', async () => {
  const { path, rendezvous } = await serveAtFile()
  rmSync(path)
  const joining = bootstrap({ environment: rendezvous.environment(0), timeout: 50 })
  await expect(joining).rejects.toMatchObject({ code: 'SHOAL_RENDEZVOUS_TIMEOUT' })
})

test('a name without a file, and wrong user ids, are refused', async () => {
  const secret = new Uint8Array(16)
  const listening = RendezvousServer.listen({ worldSize: 2, secret, address: { kind: 'unix', path: '\0shoal' } })
  await expect(listening).rejects.toThrow('RendezvousServer.listen: address.path must be a string without NUL')
  await expect(bootstrap({ users: 5 as never })).rejects.toThrow('bootstrap: users must be an array of user ids')
  await expect(bootstrap({ users: [-1] })).rejects.toThrow('bootstrap: users[0] must be')
})
