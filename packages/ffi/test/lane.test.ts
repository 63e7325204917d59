import { inspect } from 'node:util'
import { createLane, Lane, NativeMemory, offThread } from '@shoal/ffi'
import { DisposedError } from '@shoal/types'
import { expect, test } from 'vitest'
import { failWith, sleepMs, storeThread } from './support/stubCalls.js'

test('a lane keeps the order and the thread', async () => {
  const lane = createLane()
  const out = NativeMemory.allocate(8 * 20)
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => offThread({ lane }, () => storeThread(out.address + BigInt(8 * i)))),
  )
  expect(new Set(out.u64).size).toBe(1)
  lane.dispose()
  await expect(offThread({ lane }, () => failWith(0))).rejects.toBeInstanceOf(DisposedError)
})

test('what is queued on a lane runs before it ends, also when it is disposed of meanwhile', async () => {
  const lane = createLane()
  const slow = offThread({ lane }, () => sleepMs(30))
  const next = offThread({ lane }, () => failWith(4))
  lane.dispose()
  lane.dispose()
  expect(lane.disposed).toBe(true)
  expect([await slow, await next]).toEqual([[0], [4]])
})

test('prints what it is', () => {
  using lane = createLane()
  expect(lane).toBeInstanceOf(Lane)
  expect(inspect(lane)).toBe('Lane { disposed: false }')
})
