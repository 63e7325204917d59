import { readdirSync } from 'node:fs'
import { MessageChannel } from 'node:worker_threads'
import { DescriptorSocket } from '@shoal/ffi'
import { AbortedError, TimeoutError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, PhysicalMemory, AddressRange, allocationGranularity } = await import(
  '@shoal/driver/shared'
)
const { receive, receiveMemory, sendMemory, share } = await import('@shoal/driver/sharing')

const device = Device.get(0)
const limit = { timeout: 60_000 }
const openDescriptors = (): number => readdirSync('/proc/self/fd').length

describe('limits apply while a call is queued', () => {
  test('for receive, and no later message is lost', async () => {
    const { port1, port2 } = new MessageChannel()
    using a = DeviceBuffer.from(device, Int32Array.of(1))
    using b = DeviceBuffer.from(device, Int32Array.of(2))
    const unlimited = receive<'i32'>(port2)
    await expect(receive(port2, { timeout: 20 })).rejects.toThrow(TimeoutError)
    await expect(receive(port2, { signal: AbortSignal.abort() })).rejects.toThrow(AbortedError)
    const controller = new AbortController()
    const aborted = receive(port2, { signal: controller.signal })
    const behind = receive<'i32'>(port2)
    controller.abort()
    await expect(aborted).rejects.toThrow(AbortedError)
    const shared = Promise.all([share(port1, a, limit), share(port1, b, limit)])
    using first = await unlimited
    using second = await behind
    expect([first, second].map(({ buffer }) => buffer.toArraySync()[0])).toEqual([1, 2])
    await shared
    port1.close()
  })

  test('for share, and an aborted share is never delivered', async () => {
    const { port1, port2 } = new MessageChannel()
    const buffers = [1, 2, 3].map((value) => DeviceBuffer.from(device, Int32Array.of(value)))
    const [a, b, c] = buffers as [(typeof buffers)[0], (typeof buffers)[0], (typeof buffers)[0]]
    const unlimited = share(port1, a)
    await expect(share(port1, b, { timeout: 20 })).rejects.toThrow(TimeoutError)
    await expect(share(port1, b, { signal: AbortSignal.abort() })).rejects.toThrow(AbortedError)
    const controller = new AbortController()
    const aborted = share(port1, b, { signal: controller.signal })
    const behind = share(port1, c)
    controller.abort()
    await expect(aborted).rejects.toThrow(AbortedError)
    using first = await receive<'i32'>(port2, limit)
    using second = await receive<'i32'>(port2, limit)
    expect([first, second].map(({ buffer }) => buffer.toArraySync()[0])).toEqual([1, 3])
    await Promise.all([unlimited, behind])
    port1.close()
  })

  test('for sendMemory and receiveMemory, and no descriptor stays open', async () => {
    const [ours, theirs] = DescriptorSocket.pair()
    const options = { handleTypes: 'posix-fd' } as const
    using physical = PhysicalMemory.create(device, allocationGranularity(device, options), options)
    using range = AddressRange.reserve(physical.byteLength)
    using mapped = range.map(physical)
    const [a, b] = [1, 2].map((length) => DeviceBuffer.view(device, mapped, 'i32', { length }))
    const open = openDescriptors()
    // This exceeds the socket's buffer, so the next sender waits for a reader.
    const large = ours.send({ bytes: new Uint8Array(2 ** 20) })
    const unlimited = sendMemory(ours, a as NonNullable<typeof a>)
    await expect(sendMemory(ours, mapped, { timeout: 20 })).rejects.toThrow(TimeoutError)
    await expect(sendMemory(ours, mapped, { signal: AbortSignal.timeout(20) })).rejects.toThrow(AbortedError)
    const behind = sendMemory(ours, b as NonNullable<typeof b>)
    await theirs.receive()
    await Promise.all([large, unlimited, behind])
    const received = [receiveMemory(theirs), receiveMemory(theirs)]
    expect((await Promise.all(received)).map((memory) => [memory.length, memory.dispose()][0])).toEqual([1, 2])

    const waiting = receiveMemory(theirs)
    await expect(receiveMemory(theirs, { timeout: 20 })).rejects.toThrow(TimeoutError)
    await expect(receiveMemory(theirs, { signal: AbortSignal.abort() })).rejects.toThrow(AbortedError)
    const last = receiveMemory(theirs)
    await sendMemory(ours, mapped, limit)
    await sendMemory(ours, a as NonNullable<typeof a>, limit)
    expect([await waiting, await last].map((memory) => [memory.length, memory.dispose()][0])).toEqual([
      physical.byteLength,
      1,
    ])
    expect(openDescriptors()).toBe(open)
    for (const socket of [ours, theirs]) socket.dispose()
  })
})

test('a timeout error names its call, and mentions no unrelated work', async () => {
  const { port1 } = new MessageChannel()
  const [socket, other] = DescriptorSocket.pair()
  using buffer = DeviceBuffer.from(device, Int32Array.of(1))
  for (const [operation, call] of [
    ['share', (wait: object) => share(port1, buffer, wait)],
    ['receive', (wait: object) => receive(port1, wait)],
    ['receiveMemory', (wait: object) => receiveMemory(socket, wait)],
  ] as const) {
    const late: Error = await call({ timeout: 1 }).then(Promise.reject, (error) => error)
    const message = `${operation} did not end within 1 ms.`
    expect(late).toMatchObject({ name: 'TimeoutError', code: 'SHOAL_TIMEOUT', message, operation, timeout: 1 })
    expect(late.stack?.split('\n')[0]).toBe(`TimeoutError: ${message}`)
    const controller = new AbortController()
    const aborted = call({ signal: controller.signal })
    controller.abort('enough')
    const words = `${operation} was aborted by its signal: enough.`
    await expect(aborted).rejects.toMatchObject({ name: 'AbortedError', message: words, operation, cause: 'enough' })
  }
  port1.close()
  for (const one of [socket, other]) one.dispose()
})
