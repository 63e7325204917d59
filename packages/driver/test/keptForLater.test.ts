import type { CUevent } from '@shoal/cuda-sys/driver'
import { afterAll, expect, test, vi } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { cuEventQuery } = await import('@shoal/cuda-sys/driver')
const { finishReleasesSync, Stream } = await import('@shoal/driver/shared')
const { delay, TestDevice } = await import('./support/testDevice.js')
// The package does not export this class.
const { StagingPool } = await import('../src/memory/buffers/staging.js')

// Keeps the driver's context, so that blocks are freed individually instead of with the context.
const kept = new TestDevice(0)
void kept.primaryContext
afterAll(() => kept.dispose())

const MiB = 2 ** 20

test('up to 96 MiB of recently used staging memory is reused, and freed with the context', () => {
  const device = new TestDevice(0)
  const context = device.primaryContext
  const made = vi.spyOn(context, '_callWithRoom')
  const freed = vi.spyOn(context, '_releaseCall')
  const addresses = (): unknown[] =>
    freed.mock.calls.map(([call, address]) => (call === 'memFreeHost' ? address : call))
  const pool = StagingPool.of(context as never)
  const take = (...sizes: number[]) => sizes.map((bytes) => pool.take(bytes))
  const [large, middle, small] = take(40 * MiB, 20 * MiB, 1) as ReturnType<typeof take> & { length: 3 }
  expect([large, middle, small].map((block) => block?.bytes.length)).toEqual([64 * MiB, 32 * MiB, 64 * 1024])
  for (const block of [large, middle]) pool.give(block as never)
  expect(addresses()).toEqual([])
  // One more block exceeds the limit, so the block returned first is freed.
  pool.give(small as never)
  expect(addresses()).toEqual([large?.address])
  expect([large, middle].map((block) => block?.bytes.length)).toEqual([0, 32 * MiB])
  expect(made).toHaveBeenCalledTimes(3)
  expect(take(17 * MiB, 1)).toEqual([middle, small])
  expect(made).toHaveBeenCalledTimes(3)

  // Repeated copies of one size always reuse their block, whatever other blocks exist.
  freed.mockClear()
  const others = take(64 * MiB, 8 * MiB, 8 * MiB, 1, 2 * MiB)
  for (const block of [...others, middle]) pool.give(block as never)
  made.mockClear()
  for (let turn = 0; turn < 3; turn += 1) {
    const again = pool.take(32 * MiB)
    expect(again).toBe(middle)
    pool.give(again)
  }
  expect(made).not.toHaveBeenCalled()
  expect(addresses()).toEqual([others[0]?.address])

  // A block above the limit is not kept, and frees no other block.
  freed.mockClear()
  const beyond = pool.take(65 * MiB)
  expect(beyond.bytes.length).toBe(65 * MiB)
  pool.give(beyond)
  expect(addresses()).toEqual([beyond.address])
  // In addition, one block for copies in parts is kept.
  const parts = [pool.take(4 * MiB), pool.take(4 * MiB)] as const
  freed.mockClear()
  for (const part of parts) pool.give(part)
  expect(addresses()).toEqual([])
  expect(pool.take(3 * MiB)).toBe(parts[0])
  expect(pool.take(3 * MiB)).toBe(parts[1])
  for (const part of parts) pool.give(part)
  pool.give(small as never)
  finishReleasesSync()
  freed.mockClear()
  device.dispose()
  const left = [...others.slice(1), middle, parts[1], small, parts[0]]
  expect(addresses()).toEqual(left.map((block) => block?.address))
})

test('events for waits are reused, and destroyed with the context', () => {
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
  // A closed context keeps nothing.
  context._events.giveBack(stays)
})

test('events behind work of disposed streams are reused after that work completes', async () => {
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
