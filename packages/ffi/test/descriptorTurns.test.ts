import { DescriptorSocket } from '@shoal/ffi'
import { putI32, putPointer, putSize } from '@shoal/ffi/calls'
import { AbortedError, DisposedError, TimeoutError } from '@shoal/types'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stub } from './fixtures/stub.js'

let left: DescriptorSocket
let right: DescriptorSocket

beforeEach(() => {
  ;[left, right] = DescriptorSocket.pair()
})

afterEach(() => {
  left.dispose()
  right.dispose()
})

const message = (value: number) => ({ bytes: Uint8Array.of(value) })
const first = async (received: ReturnType<DescriptorSocket['receive']>) => (await received).bytes[0]

describe('a queued socket call', () => {
  test('ends by its timeout, and receives nothing', async () => {
    const unlimited = right.receive()
    const timed = right.receive({ timeout: 20 })
    await expect(timed).rejects.toBeInstanceOf(TimeoutError)
    await expect(timed).rejects.toMatchObject({ operation: 'DescriptorSocket.receive', timeout: 20 })
    await expect(right.receive({ signal: AbortSignal.abort('enough') })).rejects.toMatchObject({
      name: 'AbortedError',
      cause: 'enough',
    })
    const controller = new AbortController()
    const aborted = right.receive({ signal: controller.signal })
    const behind = right.receive()
    controller.abort()
    await expect(aborted).rejects.toBeInstanceOf(AbortedError)
    for (const value of [1, 2]) await left.send(message(value))
    expect([await first(unlimited), await first(behind)]).toEqual([1, 2])
  })

  test('sends nothing after its timeout', async () => {
    const large = { bytes: new Uint8Array(2 ** 20) }
    // This exceeds the socket's buffer, so it stays in flight until the other side reads.
    const unlimited = left.send(large)
    await expect(left.send(message(1), { timeout: 20 })).rejects.toMatchObject({
      name: 'TimeoutError',
      operation: 'DescriptorSocket.send',
      timeout: 20,
    })
    await expect(left.send(message(2), { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(AbortedError)
    const behind = left.send(message(3))
    expect((await right.receive()).bytes).toHaveLength(2 ** 20)
    expect(await first(right.receive())).toBe(3)
    await Promise.all([unlimited, behind])
    await expect(right.receive({ timeout: 20 })).rejects.toBeInstanceOf(TimeoutError)
  })

  test('runs after the call before it, even if that call was aborted', async () => {
    const before = right.receive()
    const leftOut = right.receive({ timeout: 1 })
    const order: string[] = []
    const behind = right.receive().then(({ bytes }) => order.push(`behind ${bytes[0]}`))
    void before.then(({ bytes }) => order.push(`before ${bytes[0]}`))
    await expect(leftOut).rejects.toBeInstanceOf(TimeoutError)
    for (const value of [1, 2]) await left.send(message(value))
    await behind
    expect(order).toEqual(['before 1', 'behind 2'])
  })

  test('ends with the socket', async () => {
    const all = Promise.allSettled([right.receive(), right.receive({ timeout: 60_000 }), right.receive()])
    right.dispose()
    for (const one of await all) {
      expect(one).toMatchObject({ status: 'rejected', reason: expect.any(DisposedError) })
    }
  })

  test('receives a message that has already arrived, whatever the timeout', async () => {
    for (const value of [1, 2, 3]) await left.send(message(value))
    const received = [right.receive({ timeout: 0 }), right.receive({ timeout: 60_000 }), right.receive()]
    expect(await Promise.all(received.map(first))).toEqual([1, 2, 3])
  })
})

test('the timeout of a message counts from the call, however many parts arrive', async () => {
  const send = stub().bind('send_descriptors', 0, 5)
  const bytes = new Uint8Array(40)
  new DataView(bytes.buffer).setUint32(0, bytes.length - 8, true)
  let sent = 0
  const sendByte = (): void => {
    if (sent === bytes.length) return
    putI32(0, left.descriptor, 'send_descriptors', 'socket')
    putPointer(1, bytes.subarray(sent), 'send_descriptors', 'bytes')
    putSize(2, 1, 'send_descriptors', 'n')
    putI32(3, 0, 'send_descriptors', 'descriptor')
    putI32(4, 0, 'send_descriptors', 'count')
    sent += send() as number
  }
  // Each part arrives within the limit, but all parts take ten times as long.
  const parts = setInterval(sendByte, 50)
  try {
    await expect(right.receive({ timeout: 200 })).rejects.toMatchObject({ name: 'TimeoutError', timeout: 200 })
  } finally {
    clearInterval(parts)
  }
})
