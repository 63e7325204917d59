import { inspect } from 'node:util'
import { createLane, Lane, NativeMemory, offThread } from '@shoal/ffi'
import { runQuietly } from '@shoal/ffi/calls'
import { DisposedError } from '@shoal/types'
import { expect, test } from 'vitest'
import { failWith, sleepMs, storeThread } from './support/stubCalls.js'

test('a Lane runs calls in order on one thread', async () => {
  const lane = createLane()
  const out = NativeMemory.allocate(8 * 20)
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => offThread({ lane }, () => storeThread(out.address + BigInt(8 * i)))),
  )
  expect(new Set(out.u64).size).toBe(1)
  lane.dispose()
  await expect(offThread({ lane }, () => failWith(0))).rejects.toBeInstanceOf(DisposedError)
})

test('a Lane runs its queued calls before it ends, also when disposed meanwhile', async () => {
  const lane = createLane()
  const slow = offThread({ lane }, () => sleepMs(30))
  const next = offThread({ lane }, () => failWith(4))
  lane.dispose()
  lane.dispose()
  expect(lane.disposed).toBe(true)
  expect([await slow, await next]).toEqual([[0], [4]])
})

test('quiet calls settle if the Lane is disposed just after they returned', async () => {
  for (let trial = 0; trial < 50; trial += 1) {
    const lane = createLane()
    const end = new Promise<readonly number[] | undefined>((resolve) => {
      runQuietly({ lane, context: 0n, isPrompt: false, repeats: undefined }, () => failWith(trial), resolve)
    })
    // Now the thread waits for more calls and has not woken the event loop yet.
    lane.waitSync()
    lane.dispose()
    expect(await end).toEqual(trial === 0 ? undefined : [trial])
  }
})

test('a Lane prints one line', () => {
  using lane = createLane()
  expect(lane).toBeInstanceOf(Lane)
  expect(inspect(lane)).toBe('Lane { disposed: false }')
})
