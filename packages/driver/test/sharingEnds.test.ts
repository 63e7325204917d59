import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { MessageChannel, Worker } from 'node:worker_threads'
import { DescriptorServer } from '@shoal/ffi'
import { TimeoutError } from '@shoal/types'
import { afterEach, describe, expect, test } from 'vitest'
import { runFixture } from './support/fixtureProcess.js'
import { descriptors } from './support/sharingPeer.js'

const env = { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' }
Object.assign(process.env, env)
const { allocationGranularity, Device, DeviceBuffer, PhysicalMemory } = await import('@shoal/driver/shared')
const { receive, share } = await import('@shoal/driver/sharing')

const device = Device.get(0)
const limit = { timeout: 60_000 }
const buffer = DeviceBuffer.from(device, Int32Array.of(1))
const later = DeviceBuffer.from(device, Int32Array.of(2))

/** A channel whose other side does nothing, an action that ends it, and its state afterwards. */
interface Silent {
  readonly channel: ChildProcess | Worker | MessageChannel['port1']
  readonly end: () => unknown
  readonly events: readonly string[]
}

const ends: (() => unknown)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

const silent = {
  worker: (): Silent => {
    const channel = new Worker('setInterval(() => undefined, 1000)', { eval: true })
    return { channel, end: () => channel.terminate(), events: ['exit'] }
  },
  port: (): Silent => {
    const { port1: channel, port2 } = new MessageChannel()
    return { channel, end: () => port2.close(), events: ['close'] }
  },
  child: (): Silent => {
    const channel = fork(fileURLToPath(new URL('fixtures/receivingWhenTold.mjs', import.meta.url)), {
      execArgv: [],
      stdio: ['pipe', 'inherit', 'inherit', 'ipc'],
    })
    return { channel, end: () => channel.kill('SIGKILL'), events: ['exit', 'disconnect'] }
  },
  'child that is disconnected': (): Silent => {
    const { channel, end } = silent.child()
    ends.push(end)
    return { channel, end: () => (channel as ChildProcess).disconnect(), events: ['disconnect'] }
  },
}
const kinds = ['worker', 'port', 'child', 'child that is disconnected'] as const

const calls = {
  share: (channel: Silent['channel'], options = {}) => share(channel, buffer, options),
  receive: (channel: Silent['channel'], options = {}) => receive(channel, options),
} as const
const both = kinds.flatMap((kind) => (['share', 'receive'] as const).map((call) => [call, kind] as const))

describe('the other side has ended', () => {
  test.each(both)('before the call of %s: a %s', async (call, kind) => {
    const { channel, end, events } = silent[kind]()
    const ended = Promise.all(events.map((event) => once(channel as NodeJS.EventEmitter, event)))
    end()
    await ended
    await expect(calls[call](channel)).rejects.toMatchObject({ name: 'SystemError', code: 'ECONNRESET', api: call })
  })

  test.each(['share', 'receive'] as const)('before the call of %s: its port was closed', async (call) => {
    const { port1 } = new MessageChannel()
    port1.close()
    await once(port1, 'close')
    await expect(calls[call](port1)).rejects.toMatchObject({ name: 'SystemError', code: 'ECONNRESET', api: call })
  })

  test.each(['share', 'receive'] as const)('before the call of %s: a thread that has closed its port', async (call) => {
    const program = `
      const { parentPort } = require('node:worker_threads')
      parentPort.postMessage('closes')
      parentPort.close()
      setInterval(() => undefined, 1000)`
    const worker = new Worker(program, { eval: true })
    ends.push(() => worker.terminate())
    await once(worker, 'message')
    await expect(calls[call](worker)).rejects.toMatchObject({ name: 'SystemError', code: 'ECONNRESET', api: call })
  })

  test.each(both)('while several calls of %s are queued: a %s', async (call, kind) => {
    const { channel, end } = silent[kind]()
    const all = Promise.allSettled([calls[call](channel), calls[call](channel), calls[call](channel, limit)])
    end()
    const reason = expect.objectContaining({ name: 'SystemError', code: 'ECONNRESET', api: call })
    expect(await all).toEqual(Array(3).fill({ status: 'rejected', reason }))
  })

  test('and the channel has only listeners of the program left', async () => {
    const { channel, end } = silent.port()
    const warnings: unknown[] = []
    const warn = (warning: unknown): number => warnings.push(warning)
    process.on('warning', warn)
    const all = Array.from({ length: 12 }, () => [calls.share(channel), calls.receive(channel)]).flat()
    const settled = Promise.allSettled(all)
    // Warnings arrive in a later turn.
    await new Promise((resolve) => setImmediate(resolve))
    end()
    expect((await settled).filter(({ status }) => status === 'rejected')).toHaveLength(24)
    process.off('warning', warn)
    expect(warnings).toEqual([])
    const emitter = channel as unknown as NodeJS.EventEmitter
    expect(['message', 'close', 'exit'].map((name) => emitter.listenerCount(name))).toEqual([0, 0, 0])
  })

  test.each([
    ['closedPort', 'share'],
    ['closedPort', 'receive'],
    ['endedWorker', 'share'],
    ['endedWorker', 'receive'],
    ['unrefedWorker', 'share'],
    ['unrefedWorker', 'receive'],
  ])('and an otherwise idle process notices: %s, %s', async (...args) => {
    const { code, stdout } = await runFixture(new URL('fixtures/sharingOnly.mjs', import.meta.url), env, {
      arguments: args,
    })
    expect([stdout.trim(), code]).toEqual([`SystemError ECONNRESET ${args[1]}`, 0])
  })

  test.each(['share', 'receive'])('and a disconnected child notices: %s', async (call) => {
    const program = fileURLToPath(new URL('fixtures/sharingOnly.mjs', import.meta.url))
    const child = fork(program, ['disconnected', call], { execArgv: [], silent: true })
    ends.push(() => child.kill('SIGKILL'))
    let said = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    const [code] = await once(child, 'close')
    expect([said.trim(), code]).toEqual([`SystemError ECONNRESET ${call}`, 0])
  })
})

describe('a share that was aborted before it was received', () => {
  test.each(['by its limit', 'by its signal'])('%s leaves the next share to a thread usable', async (how) => {
    const { port1, port2 } = new MessageChannel()
    const given = how === 'by its limit' ? { timeout: 1 } : { signal: AbortSignal.timeout(1) }
    await expect(share(port1, buffer, given)).rejects.toThrow('share ')
    const shared = share(port1, later, limit)
    const memory = await receive<'i32'>(port2, limit)
    expect(memory.buffer.toArraySync()).toEqual(Int32Array.of(2))
    memory.dispose()
    await (await shared).released
    port1.close()
  })

  test('leaves the next share to a process usable', async () => {
    const { channel, end } = silent.child()
    ends.push(end)
    const child = channel as ChildProcess
    await expect(share(child, buffer, { timeout: 20 })).rejects.toThrow(TimeoutError)
    const said: unknown[] = []
    child.on('message', (message) => said.push(message))
    const shared = share(child, later, limit)
    child.stdin?.write('now')
    const { released } = await shared
    await released
    await expect.poll(() => said, limit).toContainEqual({ values: [2] })
  })

  test('is skipped by a receiver that already waits, which gets the next share', async () => {
    const { port1, port2 } = new MessageChannel()
    await expect(share(port1, buffer, { timeout: 1 })).rejects.toThrow(TimeoutError)
    const received = receive<'i32'>(port2, limit)
    // By now it has noticed that the first one is closed.
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    const shared = share(port1, later, limit)
    using memory = await received
    expect(memory.buffer.toArraySync()).toEqual(Int32Array.of(2))
    await shared
    port1.close()
  })

  test('or during the transfer is skipped too, and leaks no descriptor', async () => {
    const { port1, port2 } = new MessageChannel()
    const options = { handleTypes: 'posix-fd' } as const
    using physical = PhysicalMemory.create(device, allocationGranularity(device, options), options)
    const open = descriptors()
    const server = DescriptorServer.listen(`\0shoal-share-test-${process.pid}`)
    const received = receive<'i32'>(port2, limit)
    port1.postMessage({ shoal: 'share', version: 1, id: 'given up', path: server.path })
    const socket = await server.accept(limit)
    await socket.receive(limit)
    // This is one message of two: the sender ends before the other message.
    const { byteLength } = physical
    const pieces = Array(65).fill(byteLength)
    const description = { type: 'shared-memory', version: 1, way: 'posix-fd', deviceUuid: device.uuid, byteOffset: 0 }
    const data = { ...description, byteLength, allocationBytes: 65 * byteLength, pieces }
    const handles = Array.from({ length: 64 }, () => physical.export('posix-fd'))
    await socket.send({
      bytes: Buffer.from(JSON.stringify(data)),
      descriptors: handles.map(({ descriptor }) => descriptor),
    })
    for (const one of [socket, server, ...handles]) one.dispose()
    const shared = share(port1, later, limit)
    const memory = await received
    expect(memory.buffer.toArraySync()).toEqual(Int32Array.of(2))
    memory.dispose()
    await (await shared).released
    port1.close()
    // Descriptors of another test's child may have been closed meanwhile too.
    await expect.poll(descriptors, limit).toBeLessThanOrEqual(open)
  })

  test('does not hide the end of the other side', async () => {
    const { port1, port2 } = new MessageChannel()
    await expect(share(port1, buffer, { timeout: 1 })).rejects.toThrow(TimeoutError)
    const received = receive(port2)
    port1.close()
    await expect(received).rejects.toMatchObject({ name: 'SystemError', code: 'ECONNRESET', api: 'receive' })
  })
})
