import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { DescriptorServer, DescriptorSocket } from '@shoal/ffi'
import { PeerRefusedError, TimeoutError } from '@shoal/types'
import { afterEach, expect, type TestContext, test, vi } from 'vitest'

const script = fileURLToPath(new URL('fixtures/otherUserChild.mjs', import.meta.url))
/** A user id that need not exist on this machine. */
const otherUser = 54_321
const own = process.geteuid?.() ?? 0
const children: ChildProcess[] = []
const disposables: Disposable[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const one of disposables.splice(0)) one[Symbol.dispose]()
})

function owned<T extends Disposable>(one: T): T {
  disposables.push(one)
  return one
}

/** Returns a name without a file, and therefore without permissions: any process can connect to it. */
const nameless = (): string => `shoal-peers-${process.pid}-${Math.random()}`

function mayBecomeOthers(context: TestContext): void {
  if (process.platform !== 'linux') context.skip('names without a file are of Linux')
  if (process.getuid?.() !== 0) context.skip('only the superuser can start a process of another user')
}

/** Starts a process of another user and returns its output lines. */
function startOtherUser(action: string, name: string, users?: readonly number[], inherited?: number) {
  const words = [script, String(otherUser), action, name, ...(users === undefined ? [] : [JSON.stringify(users)])]
  const stdio = ['ignore', 'pipe', 'inherit', ...(inherited === undefined ? [] : [inherited])] as const
  const child = spawn(process.execPath, words, { stdio: [...stdio] })
  children.push(child)
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  return { next: async (): Promise<unknown> => JSON.parse((await lines.next()).value as string) }
}

test('a process of another user is refused by default, and the server keeps waiting', async (context) => {
  mayBecomeOthers(context)
  const name = nameless()
  const refused: PeerRefusedError[] = []
  const server = owned(DescriptorServer.listen(`\0${name}`, { onRefused: (error) => refused.push(error) }))
  const accepting = server.accept()
  const other = startOtherUser('connect', name, [own])
  expect(await other.next()).toBe('connected')
  expect(await other.next()).toMatchObject({ code: 'ECONNRESET' })
  expect(refused).toHaveLength(1)
  expect(refused[0]).toBeInstanceOf(PeerRefusedError)
  expect(refused[0]).toMatchObject({
    code: 'SHOAL_PEER_REFUSED',
    api: 'DescriptorServer.accept',
    user: otherUser,
    users: [own],
  })
  const ours = owned(DescriptorSocket.connect(`\0${name}`))
  await ours.send({ bytes: Uint8Array.of(7) })
  expect((await owned(await accepting).receive()).bytes).toEqual(Uint8Array.of(7))
})

test('repeated connections of another user do not delay the timeout of the wait', async (context) => {
  mayBecomeOthers(context)
  const name = nameless()
  const server = owned(DescriptorServer.listen(`\0${name}`, { onRefused: () => undefined }))
  expect(await startOtherUser('storm', name, [own]).next()).toBe('connecting')
  const error: unknown = await server.accept({ timeout: 200 }).catch((reason) => reason)
  expect(error).toBeInstanceOf(TimeoutError)
  expect(error).toMatchObject({ timeout: 200 })
  const ending = new AbortController()
  setTimeout(() => ending.abort(), 100)
  await expect(server.accept({ signal: ending.signal })).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
})

test('another user receives descriptors if listed in users', async (context) => {
  mayBecomeOthers(context)
  const name = nameless()
  const server = owned(DescriptorServer.listen(`\0${name}`, { users: [otherUser] }))
  const other = startOtherUser('connect', name, [own])
  const socket = owned(await server.accept())
  const descriptor = openSync('/dev/null', 'r')
  await socket.send({ descriptors: [descriptor] })
  closeSync(descriptor)
  expect(await other.next()).toBe('connected')
  expect(await other.next()).toEqual({ descriptors: 1 })
  // The own user can connect although the list does not contain it.
  owned(DescriptorSocket.connect(`\0${name}`)).dispose()
})

test('a socket name taken first by another user is refused', async (context) => {
  mayBecomeOthers(context)
  // Each process listens for one connection.
  const [first, second] = [nameless(), nameless()]
  expect(await startOtherUser('listen', first, [own]).next()).toBe('listening')
  expect(() => DescriptorSocket.connect(`\0${first}`)).toThrow(PeerRefusedError)
  expect(await startOtherUser('listen', second, [own]).next()).toBe('listening')
  expect(() => DescriptorSocket.connect(`\0${second}`, { users: [otherUser + 1] })).toThrow(
    `DescriptorSocket.connect: the process at the other end belongs to user ${otherUser}, and only ${own}, ${otherUser + 1} may connect; add user ids with the option users`,
  )
})

test('a socket name of a listed user is accepted', async (context) => {
  mayBecomeOthers(context)
  const name = nameless()
  expect(await startNamed(name)).toBe('from another user')
})

async function startNamed(name: string): Promise<string> {
  const other = startOtherUser('listen', name, [own])
  expect(await other.next()).toBe('listening')
  const socket = owned(DescriptorSocket.connect(`\0${name}`, { users: [otherUser] }))
  return Buffer.from((await socket.receive()).bytes).toString()
}

test('an inherited socket made by another user is refused unless that user is listed', async (context) => {
  mayBecomeOthers(context)
  const [first, theirs] = DescriptorSocket.pair().map(owned) as [DescriptorSocket, DescriptorSocket]
  const refused = startOtherUser('adopt', 'none', undefined, theirs.descriptor)
  expect(await refused.next()).toMatchObject({ code: 'SHOAL_PEER_REFUSED', user: own, users: [otherUser] })
  startOtherUser('adopt', 'none', [own], theirs.descriptor)
  expect(Buffer.from((await first.receive()).bytes).toString()).toBe('adopted')
})

test('without onRefused the process warns once, and a timeout covers the whole wait', async (context) => {
  mayBecomeOthers(context)
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  try {
    const name = nameless()
    const server = owned(DescriptorServer.listen(`\0${name}`))
    // Both connections are queued before the first is accepted.
    for (const other of [startOtherUser('connect', name, [own]), startOtherUser('connect', name, [own])]) {
      expect(await other.next()).toBe('connected')
    }
    await expect(server.accept({ timeout: 50 })).rejects.toBeInstanceOf(TimeoutError)
    expect(warn).toHaveBeenCalledTimes(1)
    expect(String(warn.mock.calls[0]?.[0])).toContain(`user ${otherUser}`)
  } finally {
    warn.mockRestore()
  }
})

test('the same user is accepted at every kind of socket', async () => {
  const [left, right] = DescriptorSocket.pair().map(owned) as [DescriptorSocket, DescriptorSocket]
  const child = spawn(
    process.execPath,
    [
      '-e',
      'import(process.argv[1]).then(({ DescriptorSocket }) => DescriptorSocket.adopt(3).dispose())',
      import.meta.resolve('@shoal/ffi'),
    ],
    { stdio: ['ignore', 'inherit', 'inherit', right.descriptor] },
  )
  children.push(child)
  expect(await once(child, 'exit')).toEqual([0, null])
  expect(left.disposed).toBe(false)
})

test('DescriptorServer and DescriptorSocket refuse wrong options by name', () => {
  const anything = (value: unknown): never => value as never
  for (const call of [
    (options: never) => DescriptorServer.listen('\0never', options),
    (options: never) => DescriptorSocket.connect('\0never', options),
    (options: never) => DescriptorSocket.adopt(0, options),
  ]) {
    const from = /^Descriptor(Server\.listen|Socket\.(connect|adopt)): /
    for (const wrong of [
      5,
      { user: [1] },
      { users: 5 },
      { users: ['root'] },
      { users: [-1] },
      { users: [2 ** 32 - 1] },
    ]) {
      expect(() => call(anything(wrong))).toThrow(from)
      expect(() => call(anything(wrong))).toThrow(/ must (be|have) /)
    }
  }
  expect(() => DescriptorServer.listen('\0never', { onRefused: anything(1) })).toThrow(
    'DescriptorServer.listen: onRefused must be a function',
  )
})
