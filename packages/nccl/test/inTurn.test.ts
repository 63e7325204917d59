import type { BackgroundWork } from '@shoal/ffi'
import { expect, test, vi } from 'vitest'
// Not exported. Whether the process is kept alive cannot be observed from outside.
import { inTurn, type LiveCommunicator, whenNothingPending, whenReady } from '../src/lifetime/live.js'

let holds = 0

vi.mock('@shoal/ffi/calls', async (importOriginal) => ({
  ...(await importOriginal<object>()),
  holdEventLoop: (background: BackgroundWork) => {
    holds += 1
    let isHeld = true
    background.release = () => {
      if (isHeld) holds -= 1
      isHeld = false
    }
    return background.release
  },
}))

/** Returns a communicator with a running call, and a function that ends the call. */
function busy(): { live: LiveCommunicator; end: () => void } {
  let end = (): void => undefined
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const live = { isBlocking: true, pending: { operation: 'before', ended } } as Partial<LiveCommunicator>
  const whole = live as LiveCommunicator
  return {
    live: whole,
    end: () => {
      whole.pending = undefined
      end()
    },
  }
}

const waits = [
  [
    'its turn',
    (live: LiveCommunicator, background: BackgroundWork) => inTurn([live], 'call', async () => {}, background),
  ],
  ['work of others', whenReady],
  ['calls before its end', whenNothingPending],
] as const

test.each(waits)('a queued wait for %s keeps the process alive, even behind an aborted call', async (_, wait) => {
  const { live, end } = busy()
  const waiting = wait(live, {})
  expect(holds).toBe(1)
  end()
  await waiting
  expect(holds).toBe(0)
})

test.each(waits)('an aborted wait for %s no longer keeps the process alive', async (_, wait) => {
  const { live, end } = busy()
  const background: BackgroundWork = {}
  const waiting = wait(live, background)
  background.release?.()
  expect(holds).toBe(0)
  end()
  await waiting
  expect(holds).toBe(0)
})

test('a call at the head of the queue keeps nothing alive by waiting', async () => {
  const live = { isBlocking: true } as LiveCommunicator
  await inTurn([live], 'call', async () => expect(holds).toBe(0), {})
  await whenReady(live, {})
})
