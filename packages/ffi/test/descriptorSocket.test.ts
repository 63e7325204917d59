import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { closeDescriptor, DescriptorServer, DescriptorSocket, isHungUp } from '@shoal/ffi'
import { putI32, putPointer, putSize } from '@shoal/ffi/calls'
import { AbortedError, DisposedError, TimeoutError } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { stub } from './fixtures/stub.js'

const child = fileURLToPath(new URL('fixtures/descriptorChild.mjs', import.meta.url))
const scratch = scratchFolder()
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(scratch, 'test-'))
})

function openText(text: string): number {
  const path = join(folder, `text-${text.length}`)
  writeFileSync(path, text)
  return openSync(path, 'r')
}

function readText(descriptor: number): string {
  const bytes = Buffer.alloc(1000)
  return bytes.toString('utf8', 0, readSync(descriptor, bytes, 0, 1000, 0))
}

const openDescriptors = (): number => readdirSync('/proc/self/fd').length

test('bytes and descriptors arrive complete and in order over a DescriptorSocket', async () => {
  const [left, right] = DescriptorSocket.pair()
  const descriptors = [openText('one'), openText('other')]
  await left.send({ bytes: Buffer.from('hello'), descriptors })
  await left.send({})
  await left.send({ bytes: new Uint8Array(1_000_000).fill(7).subarray(0, 100_000) })
  for (const descriptor of descriptors) closeSync(descriptor)
  const first = await right.receive()
  expect(Buffer.from(first.bytes).toString()).toBe('hello')
  expect(first.descriptors.map(readText)).toEqual(['one', 'other'])
  for (const descriptor of first.descriptors) closeSync(descriptor)
  expect(await right.receive()).toEqual({ bytes: new Uint8Array(0), descriptors: [] })
  expect((await right.receive()).bytes.every((byte) => byte === 7)).toBe(true)
  left.dispose()
  right.dispose()
})

test('a message larger than the socket buffers waits for its reader', async () => {
  const [left, right] = DescriptorSocket.pair()
  const bytes = Uint8Array.from({ length: 1024 * 1024 }, (_, index) => (index * 31) & 255)
  const sent = left.send({ bytes })
  const { bytes: arrived } = await right.receive()
  await sent
  expect(Buffer.compare(arrived, bytes)).toBe(0)
  left.dispose()
  right.dispose()
})

test('a child process receives descriptors through an inherited socket and sends some back', async () => {
  const [ours, theirs] = DescriptorSocket.pair()
  const process = spawn('node', [child, 'inherited'], { stdio: ['ignore', 'inherit', 'inherit', theirs.descriptor] })
  const ended = once(process, 'exit')
  theirs.dispose()
  const descriptor = openText('from the parent')
  await ours.send({ descriptors: [descriptor] })
  closeSync(descriptor)
  const { bytes } = await ours.receive()
  expect(Buffer.from(bytes).toString()).toBe('from the parent')
  expect(await ended).toEqual([0, null])
  ours.dispose()
})

describe('DescriptorSocket errors', () => {
  test("have the system's error code", () => {
    expect(() => DescriptorSocket.connect(join(folder, 'nobody'))).toThrow(expect.objectContaining({ code: 'ENOENT' }))
    expect(() => DescriptorSocket.connect('x'.repeat(200))).toThrow(expect.objectContaining({ code: 'ENAMETOOLONG' }))
    const server = DescriptorServer.listen(join(folder, 'taken'))
    expect(() => DescriptorServer.listen(server.path)).toThrow(expect.objectContaining({ code: 'EADDRINUSE' }))
    server.dispose()
  })

  test('refuse to adopt a descriptor other than a Unix socket', () => {
    const descriptor = openText('a file')
    expect(() => DescriptorSocket.adopt(descriptor)).toThrow(expect.objectContaining({ code: 'ENOTSOCK' }))
    expect(fstatSync(descriptor).isFile()).toBe(true)
    closeSync(descriptor)
    expect(() => DescriptorSocket.adopt(-1)).toThrow(RangeError)
  })

  test('refuse to send a closed descriptor', async () => {
    const [left, right] = DescriptorSocket.pair()
    await expect(left.send({ descriptors: [1_000_000] })).rejects.toMatchObject({ code: 'EBADF' })
    left.dispose()
    right.dispose()
  })

  test('report that the other end was closed', async () => {
    const [left, right] = DescriptorSocket.pair()
    const waiting = right.receive()
    left.dispose()
    await expect(waiting).rejects.toMatchObject({ code: 'ECONNRESET' })
    await expect(right.send({ bytes: new Uint8Array(1) })).rejects.toMatchObject({ code: 'EPIPE' })
    right.dispose()
  })

  test('end a wait by signal, timeout and dispose', async () => {
    const [left, right] = DescriptorSocket.pair()
    await expect(right.receive({ timeout: 20 })).rejects.toBeInstanceOf(TimeoutError)
    await expect(right.receive({ signal: AbortSignal.timeout(20) })).rejects.toBeInstanceOf(AbortedError)
    const waiting = right.receive()
    setTimeout(() => right.dispose(), 20)
    await expect(waiting).rejects.toBeInstanceOf(DisposedError)
    await expect(right.receive()).rejects.toBeInstanceOf(DisposedError)
    expect(() => right.descriptor).toThrow(DisposedError)
    left.dispose()
  })

  test('refuse later messages after a wait ended within a message', async () => {
    const open = openDescriptors()
    const [left, right] = DescriptorSocket.pair()
    const large = { bytes: new Uint8Array(2 ** 20), descriptors: [0, 0] }
    // This exceeds the socket's buffer, so a part of it is in flight when the limit passes.
    await expect(left.send(large, { timeout: 30 })).rejects.toBeInstanceOf(TimeoutError)
    await expect(left.send({ bytes: new Uint8Array(1) })).rejects.toMatchObject({ code: 'EPROTO' })
    await expect(right.receive({ timeout: 30 })).rejects.toBeInstanceOf(TimeoutError)
    await expect(right.receive()).rejects.toMatchObject({ code: 'EPROTO' })
    // The other direction still works.
    await right.send({ bytes: Uint8Array.of(1, 2) })
    expect((await left.receive()).bytes).toEqual(Uint8Array.of(1, 2))
    left.dispose()
    right.dispose()
    expect(openDescriptors()).toBe(open)
  })

  test('name wrong arguments', () => {
    const [left, right] = DescriptorSocket.pair()
    expect(() => left.send({ bytes: new Uint8Array(2 ** 20 + 1) })).toThrow(RangeError)
    expect(() => left.send({ descriptors: Array(65).fill(0) })).toThrow(RangeError)
    expect(() => left.send({ descriptors: [1.5] })).toThrow(TypeError)
    for (const [message, words] of [
      [{ bytes: 'text' }, 'bytes must be a Uint8Array'],
      [{ bytes: new Uint16Array(1) }, 'bytes must be a Uint8Array'],
      [
        { bytes: new Uint8Array(2 ** 20 + 1) },
        `bytes.length must be an integer from 0 to ${2 ** 20}, not ${2 ** 20 + 1}`,
      ],
      [{ descriptors: 'text' }, 'descriptors must be an array'],
      [{ descriptors: Array(65).fill(0) }, 'descriptors.length must be an integer from 0 to 64, not 65'],
      [{ descriptors: [0, -1] }, `descriptors[1] must be an integer from 0 to ${2 ** 31 - 1}, not -1`],
    ] as const) {
      expect(() => left.send(message as never)).toThrow(`DescriptorSocket.send: ${words}`)
    }
    for (const call of [DescriptorSocket.adopt, closeDescriptor, isHungUp]) {
      expect(() => call(-1)).toThrow(`descriptor must be an integer from 0 to ${2 ** 31 - 1}, not -1`)
    }
    expect(() => left.send('text' as never)).toThrow(TypeError)
    expect(() => left.send({ byte: new Uint8Array(1) } as never)).toThrow(
      "DescriptorSocket.send: message must have only the keys bytes, descriptors, not 'byte'",
    )
    expect(() => DescriptorServer.listen('')).toThrow(RangeError)
    expect(() => DescriptorServer.listen('a\0b')).toThrow('DescriptorServer.listen: path must be')
    expect(() => DescriptorSocket.connect(5 as never)).toThrow('DescriptorSocket.connect: path must be a string, not 5')
    for (const options of [5, null, new AbortController(), { limit: 5 }, { timeout: '5' }, { signal: {} }]) {
      expect(() => left.receive(options as never)).toThrow(/^DescriptorSocket\.receive: /)
      expect(() => left.send({}, options as never)).toThrow(/^DescriptorSocket\.send: /)
    }
    expect(() => left.receive({ timeout: 2 ** 31 })).toThrow(RangeError)
    left.dispose()
    right.dispose()
  })
})

test('sockets leave no descriptor open', async () => {
  const before = openDescriptors()
  const [left, right] = DescriptorSocket.pair()
  await left.send({ bytes: readFileSync(child), descriptors: [0, 0, 0] })
  const { descriptors } = await right.receive()
  for (const descriptor of descriptors) closeSync(descriptor)
  left.dispose()
  right.dispose()
  expect(openDescriptors()).toBe(before)
})

test('unannounced descriptors are closed, and their message is refused', async () => {
  const send = stub().bind('send_descriptors', 0, 5)
  const write = (socket: DescriptorSocket, bytes: Uint8Array, count: number): void => {
    putI32(0, socket.descriptor, 'send_descriptors', 'socket')
    putPointer(1, bytes, 'send_descriptors', 'bytes')
    putSize(2, bytes.length, 'send_descriptors', 'n')
    putI32(3, 0, 'send_descriptors', 'descriptor')
    putI32(4, count, 'send_descriptors', 'count')
    expect(send()).toBe(bytes.length)
  }
  const before = openDescriptors()
  for (const [announced, withHeader] of [
    [0, 0],
    [2, 2],
  ] as const) {
    const [left, right] = DescriptorSocket.pair()
    const header = new Uint8Array(8)
    new DataView(header.buffer).setUint32(0, 1000, true)
    new DataView(header.buffer).setUint32(4, announced, true)
    write(left, header, withHeader)
    for (let sent = 0; sent < 1000; sent += 100) write(left, new Uint8Array(100), 60)
    await expect(right.receive()).rejects.toMatchObject({ code: 'EPROTO' })
    await expect(right.receive()).rejects.toMatchObject({ code: 'EPROTO' })
    left.dispose()
    right.dispose()
  }
  expect(openDescriptors()).toBe(before)
})

test('dropped sockets are closed and reported, and others are not', () => {
  const program = `
    import { readdirSync } from 'node:fs'
    import { setTimeout as sleep } from 'node:timers/promises'
    import { closeDescriptor, DescriptorServer, DescriptorSocket, isHungUp } from '@shoal/ffi'
    const open = () => readdirSync('/proc/self/fd').length
    process.on('warning', ({ name, message }) => console.log(name, message.replace(/\\d+/, 'N')))
    const [kept, other] = DescriptorSocket.pair()
    const exchange = async () => {
      await kept.send({ bytes: Uint8Array.of(1) })
      await other.receive()
    }
    await exchange()
    // The first line of a process takes a descriptor, too.
    console.log('begins')
    const before = open()
    const drop = () => {
      const [left] = DescriptorSocket.pair()
      left.dispose()
      DescriptorServer.listen('\\0shoal-dropped-' + process.pid)
    }
    drop()
    for (let turn = 0; turn < 50 && open() > before; turn += 1) {
      gc()
      await sleep(10)
    }
    await exchange()
    console.log(open() - before)
    kept.dispose()
    other.dispose()
  `
  const run = spawnSync(process.execPath, ['--expose-gc', '--input-type=module', '--eval', program], {
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('.', import.meta.url)),
  })
  const warning = 'ShoalLeakWarning A socket (descriptor N) was dropped without dispose(); it was closed now'
  expect(run.stdout.trim().split('\n')).toEqual(['begins', warning, warning, '0'])
})

test('descriptors left open by a worker are closed when it ends, and closed ones are not closed again', async () => {
  const program = `
    const { parentPort } = require('node:worker_threads')
    import(${JSON.stringify(import.meta.resolve('@shoal/ffi'))}).then(({ DescriptorServer, DescriptorSocket }) => {
      const server = DescriptorServer.listen('\\0shoal-test-' + process.pid)
      globalThis.kept = [server, DescriptorSocket.connect(server.path), ...DescriptorSocket.pair()]
      for (const socket of kept) socket.descriptor
      const closed = DescriptorSocket.pair()
      const numbers = closed.map(({ descriptor }) => descriptor)
      for (const socket of closed) socket.dispose()
      kept[2].receive().catch(() => undefined)
      parentPort.postMessage([kept.map(({ descriptor }) => descriptor), numbers])
    })`
  const worker = new Worker(program, { eval: true })
  const [[kept, closed]] = (await once(worker, 'message')) as [[number[], number[]]]
  // Descriptor numbers can be reused for other files later.
  const sockets = kept.map((descriptor) => readlinkSync(`/proc/self/fd/${descriptor}`))
  expect(openSockets()).toEqual(expect.arrayContaining(sockets))
  // The numbers of the closed descriptors are reused.
  const ours = Array.from({ length: closed.length + 10 }, () => openSync('/dev/null', 'r'))
  await worker.terminate()
  const left = openSockets()
  expect(sockets.filter((socket) => left.includes(socket))).toEqual([])
  for (const descriptor of ours) closeSync(descriptor)
})

function openSockets(): string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)]
    } catch {
      return [] // closed meanwhile
    }
  })
}

test('sockets close in a worker without the warning of Node about unknown descriptors', async () => {
  const program = `
    const { parentPort } = require('node:worker_threads')
    const warnings = []
    process.on('warning', ({ message }) => warnings.push(message))
    import(${JSON.stringify(import.meta.resolve('@shoal/ffi'))}).then(async ({ DescriptorSocket }) => {
      const [one, other] = DescriptorSocket.pair()
      await one.send({ bytes: Uint8Array.of(1) })
      await other.receive()
      const descriptors = [one.descriptor, other.descriptor]
      one.dispose()
      other.dispose()
      setImmediate(() => parentPort.postMessage([warnings, descriptors]))
    })`
  const worker = new Worker(program, { eval: true })
  const [[warnings, descriptors]] = await once(worker, 'message')
  expect(warnings).toEqual([])
  for (const descriptor of descriptors) expect(() => fstatSync(descriptor)).toThrow('EBADF')
  await worker.terminate()
})
