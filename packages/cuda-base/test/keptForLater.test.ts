import type { CUevent } from '@shoal/cuda-sys/driver'
import { afterAll, expect, test, vi } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { cuEventQuery } = await import('@shoal/cuda-sys/driver')
const { Stream } = await import('@shoal/cuda-base')
const { delay, TestDevice } = await import('./support.js')
// What the package does not export.
const { StagingPool } = await import('../src/memory/staging.js')

// Keeps the driver's context, so that what is given back is given back by name and not with the context.
const kept = new TestDevice(0)
void kept.primaryContext
afterAll(() => kept.dispose())

const MiB = 2 ** 20

test('page-locked memory of copies is kept for later ones, a block of 64 MiB and 16 MiB beside it, and goes with the context', () => {
  const device = new TestDevice(0)
  const context = device.primaryContext
  const made = vi.spyOn(context, '_call')
  const freed = vi.spyOn(context, '_release')
  const addresses = (): unknown[] =>
    freed.mock.calls.map(([call, address]) => (call === 'memFreeHost' ? address : call))
  const pool = StagingPool.of(context as never)
  const blocks = [40 * MiB, 20 * MiB, 1].map((bytes) => pool.take(bytes))
  expect(blocks.map(({ bytes }) => bytes.length)).toEqual([64 * MiB, 32 * MiB, 64 * 1024])
  const [large, middle, small] = blocks as [(typeof blocks)[0], (typeof blocks)[0], (typeof blocks)[0]]
  pool.give(large)
  expect(addresses()).toEqual([])
  pool.give(middle)
  pool.give(small)
  expect(addresses()).toEqual([middle.address])
  expect([middle, small].map(({ bytes }) => bytes.length)).toEqual([0, 64 * 1024])
  expect(made).toHaveBeenCalledTimes(3)
  expect(pool.take(33 * MiB)).toBe(large)
  expect(pool.take(1)).toBe(small)
  expect(made).toHaveBeenCalledTimes(3)
  const [most, more] = [pool.take(16 * MiB), pool.take(16 * MiB)]
  for (const block of [large, most, more]) pool.give(block)
  expect(addresses().slice(1)).toEqual([more.address])
  expect([pool.take(64 * MiB), pool.take(16 * MiB)]).toEqual([large, most])
  freed.mockClear()
  // None is idle now: half of what may be is kept, and so is the other half.
  const halves = [pool.take(32 * MiB), pool.take(32 * MiB)]
  for (const half of halves) pool.give(half)
  expect(freed).not.toHaveBeenCalled()
  pool.give(large)
  expect(addresses().at(-1)).toBe(large.address)
  const beyond = pool.take(65 * MiB)
  expect(beyond.bytes.length).toBe(65 * MiB)
  pool.give(beyond)
  expect(addresses().at(-1)).toBe(beyond.address)
  pool.give(most)
  // Beside these, one block for copies in parts.
  const parts = [pool.take(4 * MiB), pool.take(4 * MiB)] as const
  freed.mockClear()
  for (const part of parts) pool.give(part)
  expect(addresses()).toEqual([parts[1].address])
  expect(pool.take(3 * MiB)).toBe(parts[0])
  pool.give(parts[0])
  freed.mockClear()
  device.dispose()
  expect(addresses()).toEqual([...halves, most, parts[0]].map(({ address }) => address))
})

test('events of waits are used again, and go with the context', () => {
  const device = new TestDevice(0)
  const context = device.primaryContext
  const first = context._events.take()
  context._events.giveBack(first)
  expect(context._events.take()).toBe(first)
  const second = context._events.take()
  expect(second).not.toBe(first)
  const stays = context._events.take()
  context._events.giveBack(first)
  context._events.giveBack(second)
  const statuses = (): number[] =>
    kept.primaryContext.run(() => [first, second, stays].map((event) => cuEventQuery(event)))
  expect(statuses()).toEqual([0, 0, 0])
  device.dispose()
  expect(context.disposed).toBe(true)
  const invalidHandle = 400
  expect(statuses()).toEqual([invalidHandle, invalidHandle, 0])
  // Nothing is kept by a context that is gone.
  context._events.giveBack(stays)
})

test('events behind work of streams that were disposed of are used again once it has ended', async () => {
  const device = new TestDevice(0)
  const context = device.primaryContext
  const made = vi.spyOn(context._events, 'take')
  const dispose = (milliseconds: number): void => {
    const stream = Stream.create(device as never, { nonBlocking: true })
    if (milliseconds > 0) delay(stream, milliseconds)
    stream.dispose()
  }
  dispose(0)
  expect(made).not.toHaveBeenCalled()
  dispose(50)
  expect(made).toHaveBeenCalledTimes(1)
  const value = made.mock.results[0]?.value as CUevent
  while (cuEventQuery(value) !== 0) await new Promise((resolve) => setTimeout(resolve, 5))
  dispose(0)
  expect(context._events.take()).toBe(value)
  device.dispose()
})
