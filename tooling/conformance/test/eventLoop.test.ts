import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, type TestContext, test } from 'vitest'

process.env['SHOAL_DEVICE'] ??= 'sim'
const { assertFreeLoop } = await import('@shoal/conformance')

class NotCalm extends Error {}

/**
 * Runs the check. If the machine was never calm, skips the test outside of the assertion, which would catch the skip.
 */
async function check(context: TestContext, queue: () => Promise<void>, wait: () => Promise<unknown>) {
  const found = await assertFreeLoop(
    {
      defer: (fn: () => void | Promise<void>) => onTestFinished(fn),
      skip: (reason: string): never => {
        throw new NotCalm(reason)
      },
    },
    queue,
    wait,
  ).catch((error: Error) => error)
  return found instanceof NotCalm ? context.skip(found.message) : found
}

const nothing = async () => {}

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

test('an idle event loop is reported as free', async (context) => {
  const free = await check(context, nothing, () => pause(300))
  expect(free).toMatchObject({ waited: expect.any(Number), longest: expect.any(Number) })
  expect((free as { waited: number }).waited).toBeGreaterThan(290)
})

const late = { message: expect.stringMatching(/event loop was not free in 3 of [3-5] attempts/) }

test('a wait that blocks the event loop throughout is detected', async (context) => {
  expect(await check(context, nothing, async () => block(300))).toMatchObject(late)
})

test('a wait that delays the event loop repeatedly is detected', async (context) => {
  const lateAgain = async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      block(40)
      await pause(1)
    }
  }
  expect(await check(context, nothing, lateAgain)).toMatchObject(late)
})

test('one good attempt among late ones is not free, and one late among good ones is not late', async (context) => {
  const first = (isLate: boolean) => {
    let attempt = 0
    return async () => ((attempt++ === 0) === isLate ? block(300) : pause(300))
  }
  expect(await check(context, nothing, first(false))).toMatchObject(late)
  expect(await check(context, nothing, first(true))).not.toBeInstanceOf(Error)
})
