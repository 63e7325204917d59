import { spawnSync } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { connect, createServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { bootstrap, type Job, RendezvousError, RendezvousTimeoutError } from '@shoal/launch'
import { formatAddress, parseAddress, RendezvousServer } from '@shoal/launch/server'
import { expect, test } from 'vitest'
import { afterThisTest, failuresOf, serve, sleep, startJob, type TestRendezvous } from './support/jobs.js'

/** A connection that does not know its peer. */
async function connectRaw(rendezvous: TestRendezvous): Promise<Socket> {
  const address = parseAddress(rendezvous.environment(0)['SHOAL_RENDEZVOUS']!)
  if (address.kind !== 'tcp') throw new Error('a port was expected')
  const socket = connect(address.port, address.host)
  socket.on('error', () => undefined)
  afterThisTest(() => void socket.destroy())
  await new Promise((resolve) => socket.once('connect', resolve))
  return socket
}

const closed = (socket: Socket): Promise<unknown> =>
  socket.destroyed ? Promise.resolve() : new Promise((resolve) => socket.once('close', resolve))

/** Checks that the job works and that no rank counts as lost. */
async function expectUndisturbed(jobs: readonly Job[]): Promise<void> {
  await Promise.all(jobs.map((job) => job.barrier('undisturbed', { timeout: 300_000 })))
  expect(jobs.every((job) => !job.lost.aborted)).toBe(true)
}

test.each([
  ['a request of HTTP', Buffer.from(`GET / HTTP/1.1\r\nHost: localhost\r\n\r\n${'x'.repeat(200)}`)],
  ['random bytes', randomBytes(4096)],
  ['the shape of an introduction, and nothing in it', Buffer.concat([Buffer.from('shoal/2\n'), Buffer.alloc(196)])],
  ['the length of an endless message', Buffer.alloc(240, 0xff)],
  ['ten megabytes', Buffer.alloc(10 * 2 ** 20, 0x41)],
])('the rendezvous rejects %s', async (_, garbage) => {
  const { rendezvous, jobs } = await startJob(2)
  const socket = await connectRaw(rendezvous)
  socket.resume()
  socket.write(garbage)
  await closed(socket)
  expect(rendezvous.rejections).toHaveLength(1)
  expect(rendezvous.rejections[0]).toMatch(/a connection from 127\.0\.0\.1:\d+ was closed: it does not/)
  await expectUndisturbed(jobs)
})

test('a wrong secret is refused at once, and the rank gets the reason', async () => {
  const rendezvous = await serve(2)
  const environment = { ...rendezvous.environment(1), SHOAL_SECRET: 'another secret altogether' }
  // A rank that tried again until its limit would outlast the test.
  const joining = bootstrap({ environment, timeout: 2 ** 31 - 1 })
  await expect(joining).rejects.toThrow(/refused rank 1: this rank has another secret than the job/)
  expect(rendezvous.rejections[0]).toContain('it does not know the secret of the job')
  // The rank's place is still free for the rank with the secret.
  await expectUndisturbed(await Promise.all([rendezvous.join(0), rendezvous.join(1)]))
})

test('a captured proof is valid for one connection only', async () => {
  const { rendezvous, jobs } = await startJob(2)
  // The recorded bytes of a rank of another job with the same secret.
  const { server } = await RendezvousServerWith(rendezvous.secret, 3)
  const captured = await captureProof(server, { ...rendezvous.environment(0), WORLD_SIZE: '3' })
  const socket = await connectRaw(rendezvous)
  socket.resume()
  socket.write(captured)
  await closed(socket)
  expect(rendezvous.rejections.at(-1)).toContain('it does not know the secret of the job')
  await expectUndisturbed(jobs)
})

async function RendezvousServerWith(secret: string, worldSize: number): Promise<{ server: RendezvousServer }> {
  const server = await RendezvousServer.listen({ worldSize, secret: Buffer.from(secret) })
  afterThisTest(() => server.dispose())
  return { server }
}

/** Records the first bytes that a rank sends. */
async function captureProof(server: RendezvousServer, environment: Record<string, string>): Promise<Buffer> {
  const { address } = server
  if (address.kind !== 'tcp') throw new Error('a port was expected')
  return new Promise((resolve, reject) => {
    const proxy = createServer((client) => {
      const upstream = connect(address.port, address.host)
      upstream.on('error', () => undefined)
      client.on('error', () => undefined)
      upstream.pipe(client)
      client.once('data', (chunk: Buffer) => {
        resolve(chunk)
        client.destroy()
        upstream.destroy()
      })
    })
    afterThisTest(() => void proxy.close())
    proxy.listen(0, '127.0.0.1', () => {
      const own = proxy.address()
      if (own === null || typeof own === 'string') return reject(new Error('no port'))
      const through = { ...environment, SHOAL_RENDEZVOUS: `tcp://127.0.0.1:${own.port}` }
      bootstrap({ environment: through, timeout: 1_000 }).catch(() => undefined)
    })
  })
}

/** A handmade rank, which can send messages that Shoal's client cannot send. */
async function rawRank(rendezvous: TestRendezvous, rank: number, worldSize: number): Promise<Socket> {
  const socket = await connectRaw(rendezvous)
  const greeting = await new Promise<Buffer>((resolve) => socket.once('data', resolve))
  // Rank, world size, role, process, ranks of its machine, an instance, and hashes of its job, its place and its
  // launcher.
  const said = Buffer.alloc(132)
  said.writeUInt32LE(rank, 0)
  said.writeUInt32LE(worldSize, 4)
  const nonce = randomBytes(32)
  const parts = [greeting.subarray(8), nonce, said]
  const proof = createHmac('sha256', rendezvous.secret).update('shoal rank').update(Buffer.concat(parts)).digest()
  socket.write(Buffer.concat([Buffer.from('shoal/2\n'), said, nonce, proof]))
  const answer = await new Promise<Buffer>((resolve) => socket.once('data', resolve))
  const expected = createHmac('sha256', rendezvous.secret).update('shoal rendezvous')
  expect(answer.subarray(1)).toEqual(expected.update(Buffer.concat([greeting.subarray(8), nonce])).digest())
  socket.resume()
  return socket
}

function frame(header: string, body = Buffer.alloc(0), lengths: { all?: number; header?: number } = {}): Buffer {
  const json = Buffer.from(header)
  const numbers = Buffer.alloc(8)
  numbers.writeUInt32LE(lengths.all ?? 4 + json.byteLength + body.byteLength, 0)
  numbers.writeUInt32LE(lengths.header ?? json.byteLength, 4)
  return Buffer.concat([numbers, json, body])
}

const bytewise = '{"op":"set","id":1,"space":0,"name":"key"}'

test.each<[string, Buffer]>([
  ['a message of 4 GiB', frame('{}', undefined, { all: 2 ** 32 - 1 })],
  ['a message of no length', frame('{}', undefined, { all: 0 })],
  ['a header longer than its message', frame('{}', undefined, { header: 2 ** 31 })],
  ['a header that is not JSON', frame('{"op":')],
  ['a header that is not an object', frame('7')],
  ['an operation that does not exist', frame('{"op":"format","id":1,"space":0}')],
  ['an operation without a number', frame('{"op":"barrier","space":0,"name":"x"}')],
  ['an operation in a foreign space', frame('{"op":"barrier","id":1,"space":7,"name":"x"}')],
  ['a name that is not text', frame('{"op":"get","id":1,"space":0,"name":["x"]}')],
  ['a root that does not exist', frame('{"op":"share","id":1,"space":0,"name":"x","root":99}')],
  ['a value of more than 1 MiB', frame(bytewise, Buffer.alloc(2 ** 20 + 1))],
])('a rank that sends %s is lost, and the others continue', async (_, message) => {
  const rendezvous = await serve(3)
  const joining = [rendezvous.join(0), rendezvous.join(1)]
  const raw = await rawRank(rendezvous, 2, 3)
  raw.write(frame('{"op":"join","id":0,"host":"elsewhere"}'))
  const [first, second] = (await Promise.all(joining)) as [Job, Job]
  raw.write(message)
  await closed(raw)
  if (!first.lost.aborted) await new Promise((resolve) => first.lost.addEventListener('abort', resolve))
  expect(first.lostRanks).toEqual([2])
  expect(rendezvous.rejections[0]).toMatch(/^rank 2 sent /)
  await expectUndisturbed(await Promise.all([first.survivors(), second.survivors()]))
})

test('a message may arrive in any pieces', async () => {
  const rendezvous = await serve(2)
  const joining = rendezvous.join(0)
  const raw = await rawRank(rendezvous, 1, 2)
  for (const byte of frame('{"op":"join","id":0,"host":"elsewhere"}')) {
    raw.write(Uint8Array.of(byte))
    await sleep(0)
  }
  const job = await joining
  for (const byte of frame(bytewise, Buffer.from('value'))) raw.write(Uint8Array.of(byte))
  expect(Buffer.from(await job.get('key')).toString()).toBe('value')
})

test('a rank with a timeout beyond the timer limit does not time out at once', async () => {
  const rendezvous = await serve(2)
  const raw = await rawRank(rendezvous, 1, 2)
  const heard: Buffer[] = []
  raw.on('data', (chunk: Buffer) => heard.push(chunk))
  raw.write(frame(`{"op":"join","id":0,"host":"elsewhere","timeout":${2 ** 40}}`))
  await sleep(100)
  expect(heard).toEqual([])
  await rendezvous.join(0)
  await expect.poll(() => String(Buffer.concat(heard)), { timeout: 300_000 }).toContain('"id":0')
})

test('a silent connection does not delay ranks, and is closed', async () => {
  const rendezvous = await serve(2)
  const silent = await connectRaw(rendezvous)
  const half = await connectRaw(rendezvous)
  half.write('shoal/2\n')
  silent.resume()
  half.resume()
  const jobs = await Promise.all([rendezvous.join(0), rendezvous.join(1)])
  await expectUndisturbed(jobs)
  await Promise.all([closed(silent), closed(half)])
  expect(rendezvous.rejections).toHaveLength(2)
  for (const reason of rendezvous.rejections) expect(reason).toContain('it did not identify itself within 5000 ms')
  await expectUndisturbed(jobs)
})

test('a flood of connections does not keep ranks out', async () => {
  const rendezvous = await serve(4)
  let goesOn = true
  const flood = (async () => {
    for (let opened = 50; goesOn; opened += 50) {
      await Promise.all(Array.from({ length: 50 }, () => connectRaw(rendezvous)))
      // The server is in this process too. On a busy machine the flood would only grow, and no connection would be
      // accepted.
      while (goesOn && opened - rendezvous.rejections.length > 700) await sleep(1)
    }
  })()
  await expect.poll(() => rendezvous.rejections.length, { timeout: 300_000 }).toBeGreaterThan(0)
  const jobs = await Promise.all([0, 1, 2, 3].map((rank) => rendezvous.join(rank)))
  await expectUndisturbed(jobs)
  goesOn = false
  await flood
  await sleep(50)
  // On a slow machine some connections last five seconds.
  expect(rendezvous.rejections.every((reason) => /too many connections|did not identify itself/.test(reason))).toBe(
    true,
  )
  await expectUndisturbed(jobs)
})

test('a rendezvous listening on all addresses accepts ranks over IPv4 and IPv6', async (context) => {
  const has6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'))
  if (!has6) return context.skip('no IPv6 on the loopback interface of this machine')
  const rendezvous = await serve(2, { address: { kind: 'tcp', host: '::', port: 0 } })
  const { address } = rendezvous.server
  if (address.kind !== 'tcp') throw new Error('a port was expected')
  const join = (rank: number, host: string) => {
    const SHOAL_RENDEZVOUS = formatAddress({ kind: 'tcp', host, port: address.port })
    return bootstrap({ environment: { ...rendezvous.environment(rank), SHOAL_RENDEZVOUS } })
  }
  const jobs = await Promise.all([join(0, '127.0.0.1'), join(1, '::1')])
  await expectUndisturbed(jobs)
  await expect(join(0, '127.0.0.1')).rejects.toThrow('another process is this rank already')
  // In the user's notation, not in that of a socket for IPv4 and IPv6.
  expect(rendezvous.rejections).toEqual([expect.stringMatching(/from 127\.0\.0\.1:\d+ was closed/)])
  for (const job of jobs) await job.dispose()
})

test('the flood guard admits all ranks of a large job at once', async () => {
  const rendezvous = await serve(600)
  for (let count = 0; count < 1200; count += 100) {
    await Promise.all(Array.from({ length: 100 }, () => connectRaw(rendezvous)))
  }
  // The server accepts this connection last, so it has seen the others.
  await connectRaw(rendezvous)
  await expect.poll(() => rendezvous.rejections.length, { timeout: 300_000 }).toBeGreaterThan(0)
  const reasons = rendezvous.rejections.filter((reason) => reason.includes('too many connections'))
  // There can be more only if the limit of five seconds did not close some before.
  expect(reasons.length).toBeLessThanOrEqual(1)
})

test('a second process cannot take over the place of a rank', async () => {
  const { rendezvous, jobs } = await startJob(2)
  await expect(rendezvous.join(1)).rejects.toThrow('another process is this rank already')
  await jobs[1]!.dispose()
  await expect(rendezvous.join(1)).rejects.toThrow('it cannot come back')
})

test('ranks of another job are refused with that reason', async () => {
  const rendezvous = await serve(2)
  const [size, rank] = await failuresOf([
    bootstrap({ environment: { ...rendezvous.environment(0), WORLD_SIZE: '3' } }),
    bootstrap({ environment: { ...rendezvous.environment(2), WORLD_SIZE: '2' } }),
  ])
  expect(size).toBeInstanceOf(RendezvousError)
  expect(String(size)).toContain('another world size than the others')
  expect(String(rank)).toContain('this is rank 2 of 2')
})

/** Starts a server on the rendezvous port that is not a rendezvous. */
async function fakeServer(answer: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    answer(socket)
  })
  afterThisTest(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return formatAddress({ kind: 'tcp', host: '127.0.0.1', port: address.port })
}

test.each<[string, (socket: Socket) => void, string]>([
  ['garbage', (socket) => socket.write(randomBytes(64)), 'something else answers there'],
  ['nothing', () => undefined, 'it does not answer'],
  ['an end', (socket) => socket.end(), 'it closed the connection'],
  [
    'an acceptance without knowing the secret',
    (socket) => {
      socket.write(Buffer.concat([Buffer.from('shoal/2\n'), randomBytes(32)]))
      socket.once('data', () => socket.write(Buffer.concat([Buffer.from([0]), randomBytes(32)])))
    },
    'what answers there does not know the secret of the job',
  ],
])('a rank refuses %s found at the rendezvous address', async (_, answer, words) => {
  const rendezvous = await fakeServer(answer)
  const environment = { SHOAL_RENDEZVOUS: rendezvous, SHOAL_SECRET: 'x'.repeat(32), RANK: '0', WORLD_SIZE: '2' }
  const [error] = await failuresOf([bootstrap({ environment, timeout: 1_000 })])
  expect(error).toBeInstanceOf(RendezvousTimeoutError)
  expect(String(error)).toContain(words)
})

test('a rank waits for a slow answer, and is not lost by trying again', async () => {
  const rendezvous = await serve(2)
  const real = parseAddress(rendezvous.environment(0)['SHOAL_RENDEZVOUS']!)
  if (real.kind !== 'tcp') throw new Error('a port was expected')
  let connections = 0
  const slow = await fakeServer((socket) => {
    connections += 1
    const upstream = connect(real.port, real.host)
    upstream.on('error', () => undefined)
    socket.pipe(upstream)
    upstream.once('data', (greeting: Buffer) => {
      socket.write(greeting)
      // Longer than a rank waits for a greeting.
      setTimeout(() => upstream.pipe(socket), 11_000)
      upstream.pause()
    })
  })
  const late = bootstrap({ environment: { ...rendezvous.environment(1), SHOAL_RENDEZVOUS: slow } })
  const jobs = await Promise.all([rendezvous.join(0), late])
  await expectUndisturbed(jobs)
  expect(connections).toBe(1)
  await jobs[1].dispose()
})

test('the secret is never sent over the connection', async () => {
  const secret = 'a secret that would be seen'
  // By connection, because there may be time for a second one.
  const heard: Buffer[] = []
  const rendezvous = await fakeServer((socket) => {
    const index = heard.push(Buffer.alloc(0)) - 1
    socket.write(Buffer.concat([Buffer.from('shoal/2\n'), randomBytes(32)]))
    socket.on('data', (chunk: Buffer) => {
      heard[index] = Buffer.concat([heard[index]!, chunk])
    })
  })
  const environment = { SHOAL_RENDEZVOUS: rendezvous, SHOAL_SECRET: secret, RANK: '0', WORLD_SIZE: '2' }
  await failuresOf([bootstrap({ environment, timeout: 1_000 })])
  expect(heard[0]!.byteLength).toBe(204)
  for (const bytes of heard) {
    expect([0, 204]).toContain(bytes.byteLength)
    expect(bytes.includes(secret)).toBe(false)
  }
})

test('wrong options are refused by name', async () => {
  const anything = (value: unknown): never => value as never
  const secret = new Uint8Array(16)
  await expect(RendezvousServer.listen(anything(undefined))).rejects.toThrow(
    'RendezvousServer.listen: options must be a plain object',
  )
  await expect(RendezvousServer.listen(anything({ worldSize: 2 }))).rejects.toThrow(
    'RendezvousServer.listen: secret must be a Uint8Array',
  )
  await expect(RendezvousServer.listen({ worldSize: 2, secret: new Uint8Array(15) })).rejects.toThrow(RangeError)
  await expect(RendezvousServer.listen({ worldSize: anything('2'), secret })).rejects.toThrow(TypeError)
  await expect(RendezvousServer.listen({ worldSize: 2 ** 31, secret })).rejects.toThrow(/from 1 to 1048576/)
  const listen = RendezvousServer.listen(anything({ worldSize: 2, secret, port: 0 }))
  await expect(listen).rejects.toThrow("not 'port'")
})

test('the server prints its address and the number of connected ranks', async () => {
  const { rendezvous, jobs } = await startJob(2)
  const { server } = rendezvous
  expect(inspect(server)).toMatch(
    /^RendezvousServer \{ address: 'tcp:\/\/127\.0\.0\.1:\d+', worldSize: 2, connected: 2, disposed: false \}$/,
  )
  expect(inspect(jobs[1])).toBe("Job { rank: 1, worldSize: 2, localRank: 1, deviceOrdinal: 1, launcher: 'shoal' }")
  server.dispose()
  server.dispose()
  expect(inspect(server)).toMatch(/^RendezvousServer \{ worldSize: 2, connected: \d, disposed: true \}$/)
})

test('a disposed rendezvous does not count the ranks it disconnects as lost', async () => {
  const told: string[] = []
  const rendezvous = await serve(2, {
    onLost: (rank) => told.push(`rank ${rank} is lost`),
    onEmpty: () => told.push('nobody is left'),
  })
  const jobs = await Promise.all([0, 1].map((rank) => rendezvous.join(rank)))
  const heard = jobs.map(({ lost }) => new Promise((resolve) => lost.addEventListener('abort', resolve)))
  rendezvous.server.dispose()
  await Promise.all(heard)
  await sleep(20)
  expect(jobs.map(({ lost }) => (lost.reason as Error).name)).toEqual(['RendezvousLostError', 'RendezvousLostError'])
  expect(told).toEqual([])
})

test('a disposed rendezvous does not keep the process alive for waiting ranks', {
  timeout: 120_000,
}, () => {
  const program = fileURLToPath(new URL('fixtures/disposedServer.mjs', import.meta.url))
  // The waits have a limit of one hour.
  const { status, stdout } = spawnSync(process.execPath, [program], {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
  })
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'RendezvousLostError\nRendezvousLostError\n' })
})
