import { getEventListeners } from 'node:events'
import { NativeMemory, waitForEvent } from '@shoal/ffi'
import { AbortedError, TimeoutError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { library } from './support/stubCalls.js'

describe('waitForEvent()', () => {
  const query = library.address('query')
  const countdown = (left: number, status: number): NativeMemory => {
    const memory = NativeMemory.allocate(8)
    memory.i32.set([left, status])
    return memory
  }

  test.each([
    [0, 0],
    [1, 0],
    [50, 0],
    [3, 719],
  ])('asks %i times, then returns status %i', async (left, status) => {
    const memory = countdown(left, status)
    expect(await waitForEvent({ context: 0n, event: memory.address, query, notReady: 600 })).toBe(status)
    expect(memory.i32[0]).toBe(-1)
  })

  test('handles 2000 waits at once', async () => {
    const memories = Array.from({ length: 2000 }, (_, i) => countdown(i % 40, i % 500))
    const statuses = await Promise.all(
      memories.map((m) => waitForEvent({ context: 0n, event: m.address, query, notReady: 600 })),
    )
    expect(statuses).toEqual(memories.map((_, i) => i % 500))
  })

  test('rejects with the error of a destroyed context', async () => {
    expect(await waitForEvent({ context: 666n, event: countdown(5, 0).address, query, notReady: 600 })).toBe(709)
  })

  test('refuses wrong queries, which delay no other wait', async () => {
    const good = { context: 0n, event: 1n, query, notReady: 600 }
    for (const wrong of [
      { query: 0n },
      { context: 5 },
      { event: undefined },
      { event: 2n ** 64n },
      { notReady: Number.NaN },
    ]) {
      await expect(waitForEvent({ ...good, ...wrong } as never)).rejects.toThrow(/^waitForEvent: query\.\w+ must be /)
    }
  })

  test('aborts thousands of waits without stalling the thread', async () => {
    const never = countdown(2 ** 31 - 1, 0)
    const controller = new AbortController()
    const waits = Array.from({ length: 3000 }, () =>
      waitForEvent({ context: 0n, event: never.address, query, notReady: 600 }, { signal: controller.signal }),
    )
    const all = Promise.allSettled(waits)
    await new Promise((resolve) => setTimeout(resolve, 5))
    controller.abort()
    expect((await all).every(({ status }) => status === 'rejected')).toBe(true)
    expect(never.i32[0]).toBeGreaterThan(0) // and must exist until here, because the native thread reads its address
  })

  test('aborted during a blocking query does not block the thread, and ends with the query', async () => {
    const flags = NativeMemory.allocate(8)
    const held = { context: 0n, event: flags.address, query: library.address('held_query'), notReady: 600 }
    const controller = new AbortController()
    let ended = false
    const wait = waitForEvent(held, { signal: controller.signal, timeout: 1000 }).finally(() => {
      ended = true
    })
    const rejected = expect(wait).rejects.toMatchObject({ name: 'AbortedError', cause: 'first' })
    await expect.poll(() => flags.i32[0], { timeout: 300_000, interval: 1 }).toBe(1)
    controller.abort('first')
    // Another wait without a caller ends at once.
    const other = new AbortController()
    const never = countdown(2 ** 31 - 1, 0)
    const idle = waitForEvent({ context: 0n, event: never.address, query, notReady: 600 }, { signal: other.signal })
    other.abort()
    await expect(idle).rejects.toBeInstanceOf(AbortedError)
    expect(never.i32[0]).toBeGreaterThan(0)
    // The timeout passes second and changes nothing.
    await new Promise((resolve) => setTimeout(resolve, 1100))
    expect(ended).toBe(false)
    flags.i32[1] = 1
    await rejected
  })

  test('uses one listener for many waits on one signal, and removes it with the last wait', async () => {
    const { signal } = new AbortController()
    // Kept until the waits have ended, because the native thread has only the address.
    const memories: NativeMemory[] = []
    const event = (left: number) => {
      const memory = countdown(left, 0)
      memories.push(memory)
      return { context: 0n, event: memory.address, query, notReady: 600 }
    }
    const listeners = () => getEventListeners(signal, 'abort').length
    for (let round = 0; round < 2; round += 1) {
      const waits = Array.from({ length: 30 }, (_, i) => waitForEvent(event(i), { signal }))
      expect(listeners()).toBe(1)
      await Promise.all(waits)
      expect(listeners()).toBe(0)
    }
    await expect(waitForEvent(event(3), { signal: {} as AbortSignal })).rejects.toThrow(/must be an AbortSignal/)
    expect(memories.every((memory) => memory.i32[0] === -1)).toBe(false) // the last was never polled
  })

  test('ends a wait by abort or timeout, but never the work', async () => {
    const never = countdown(2 ** 31 - 1, 0)
    const forever = { context: 0n, event: never.address, query, notReady: 600 }
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('enough')), 20)
    await expect(waitForEvent(forever, { signal: controller.signal })).rejects.toBeInstanceOf(AbortedError)
    await expect(waitForEvent(forever, { signal: controller.signal })).rejects.toBeInstanceOf(AbortedError)
    await expect(waitForEvent(forever, { timeout: 20 })).rejects.toBeInstanceOf(TimeoutError)
    await expect(waitForEvent(forever, { timeout: Number.NaN })).rejects.toBeInstanceOf(TypeError)
    for (const timeout of [-1, 2 ** 31, Number.POSITIVE_INFINITY]) {
      await expect(waitForEvent(forever, { timeout })).rejects.toBeInstanceOf(RangeError)
    }
    await expect(waitForEvent(forever, { limit: 5 } as never)).rejects.toThrow("not 'limit'")
    const asked = never.i32[0]
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(never.i32[0]).toBe(asked)
  })
})
