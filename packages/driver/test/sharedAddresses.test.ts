import { EventEmitter } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { DescriptorServer, DescriptorSocket } from '@shoal/ffi'
import { memoryProtocol } from '@shoal/types'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer } = await import('@shoal/driver/shared')
const { receive, receiveMemory, share } = await import('@shoal/driver/sharing')
type Channels = typeof import('@shoal/driver/sharing')

const device = Device.get(0)
const limit = { timeout: 60_000 }
/** Memory that was never shared. */
const secret = DeviceBuffer.from(device, Float32Array.of(1.5, 2.5, 3.5, 4.5))
const forged = {
  type: 'shared-memory',
  version: 1,
  way: 'process',
  process: process.pid,
  address: String(secret.address),
  byteLength: 16,
  byteOffset: 0,
  deviceUuid: device.uuid,
  dtype: 'f32',
  shape: [4],
  offer: '0'.repeat(32),
} as const

afterAll(() => secret.dispose())

describe('an address that was never shared is not opened', () => {
  test('if it arrives from a socket', async () => {
    const [ours, theirs] = DescriptorSocket.pair()
    await theirs.send({ bytes: Buffer.from(JSON.stringify(forged)) })
    await expect(receiveMemory(ours, limit)).rejects.toThrow(
      "receiveMemory: message.way must be 'posix-fd', 'ipc' or 'pool', not 'process'",
    )
    for (const socket of [ours, theirs]) socket.dispose()
  })

  test('if it arrives from a process', async () => {
    const path = `\0shoal-share-${process.pid.toString(16).padStart(32, '0')}`
    using server = DescriptorServer.listen(path)
    const events = new EventEmitter()
    const send = (): boolean => events.emit('message', { shoal: 'share', version: 1, id: '1', path })
    const received = receive(Object.assign(events, { send }), limit)
    received.catch(() => undefined)
    using peer = await server.accept(limit)
    expect(JSON.parse(Buffer.from((await peer.receive(limit)).bytes).toString())).toEqual({ type: 'ready' })
    await peer.send({ bytes: Buffer.from(JSON.stringify(forged)) })
    await expect(received).rejects.toThrow("receive: message.way must be 'posix-fd', 'ipc' or 'pool', not 'process'")
  })

  test('if it arrives from a socket that claims to be a thread', async () => {
    using server = DescriptorServer.listen(`\0shoal-share-forged-${process.pid}`)
    const { port1, port2 } = new MessageChannel()
    const received = receive(port2, limit)
    received.catch(() => undefined)
    port1.postMessage({ shoal: 'share', version: 1, id: '1', path: server.path })
    using peer = await server.accept(limit)
    await peer.send({ bytes: Buffer.from(JSON.stringify(forged)) })
    await expect(received).rejects.toThrow("receive: message.way must be 'posix-fd', 'ipc' or 'pool', not 'process'")
    port1.close()
  })

  test.each([
    ['a made-up key', forged, 'receive: message.offer must be the key of memory that a thread of this process shares'],
    ['no key', { ...forged, offer: undefined }, 'receive: message.offer must be a string'],
    [
      'another way',
      { ...forged, way: 'ipc', handle: Buffer.alloc(64).toString('base64') },
      "must be 'process', not 'ipc'",
    ],
  ])('if it arrives from a thread, with %s', async (_name, message, words) => {
    const { port1, port2 } = new MessageChannel()
    const received = receive(port2, limit)
    received.catch(() => undefined)
    const { port1: theirs, port2: port } = new MessageChannel()
    theirs.on('message', ({ type }: { type: string }) => {
      if (type === 'ready') theirs.postMessage(message)
    })
    port1.postMessage({ shoal: 'share', version: 1, id: '1', port }, [port])
    await expect(received).rejects.toThrow(words)
    port1.close()
    theirs.close()
  })

  test('if it arrives from another process over a channel that claims to be a thread', async () => {
    // A program's own transport, which sends everything as JSON.
    const ends = [new EventEmitter(), new EventEmitter()] as const
    const channels = ends.map((end, index) =>
      Object.assign(end, {
        postMessage: (message: object) => void ends[1 - index]?.emit('message', JSON.parse(JSON.stringify(message))),
      }),
    ) as unknown as [Parameters<Channels['receive']>[0], Parameters<Channels['receive']>[0]]
    const received = receive(channels[0], limit)
    received.catch(() => undefined)
    const sent = share(channels[1], secret, { timeout: 100 })
    await expect(received).rejects.toThrow('receive: message.path must be the name of a socket of share()')
    await expect(sent).rejects.toThrow()
  })
})

describe('the key for sharing between threads', () => {
  /** Shares memory within the process and forwards the port's messages. */
  async function spy() {
    const { port1, port2 } = new MessageChannel()
    const sharing = share(port1, secret, limit)
    sharing.catch(() => undefined)
    const offer = await new Promise<{ id: string; port: MessagePort }>((resolve) => port2.once('message', resolve))
    const message = new Promise<object>((resolve) => offer.port.once('message', resolve))
    offer.port.postMessage({ type: 'ready' })
    return { sharing, port: offer.port, message: await message, ends: [port1, port2] }
  }

  function give(message: object): Promise<Channels['SharedMemory']['prototype']> {
    const { port1, port2 } = new MessageChannel()
    const { port1: theirs, port2: port } = new MessageChannel()
    theirs.on('message', ({ type }: { type: string }) => {
      if (type === 'ready') theirs.postMessage(message)
      else theirs.close()
    })
    const received = receive(port2, limit)
    port1.postMessage({ shoal: 'share', version: 1, id: '1', port }, [port])
    return received.finally(() => port1.close())
  }

  test('is the only content of the message, and opens the shared memory once', async () => {
    const { sharing, port, message, ends } = await spy()
    expect(Object.keys(message).sort()).toEqual(['offer', 'type', 'version', 'way'])
    const more = { address: '4096', byteLength: 2 ** 40, byteOffset: 64, dtype: 'u8', shape: [2 ** 40] }
    const memory = await give({ ...message, ...more })
    expect(memory[memoryProtocol]).toMatchObject({ address: secret.address, byteLength: 16, dtype: 'f32', shape: [4] })
    memory.dispose()
    await expect(give(message)).rejects.toThrow('receive: message.offer must be the key')
    port.postMessage({ type: 'taken' })
    port.close()
    await (await sharing).released
    for (const end of ends) end.close()
  })

  test('opens nothing after the sender has ended', async () => {
    const worker = new Worker(new URL('fixtures/sharing.mjs', import.meta.url))
    const offer = await new Promise<{ port: MessagePort }>((resolve) => {
      worker.on('message', (said) => {
        if (said.shoal === 'share') resolve(said)
      })
      worker.postMessage({ action: 'give' })
    })
    const message = new Promise<object>((resolve) => offer.port.once('message', resolve))
    offer.port.postMessage({ type: 'ready' })
    const description = await message
    await worker.terminate()
    await expect(give(description)).rejects.toThrow('receive: message.offer must be the key')
  })
})
