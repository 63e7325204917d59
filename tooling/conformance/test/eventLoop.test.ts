import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, type TestContext, test } from 'vitest'

process.env['SHOAL_DEVICE'] ??= 'sim'
const { assertFreeLoop } = await import('@shoal/conformance')

const within = (context: TestContext) => ({
  defer: (fn: () => void | Promise<void>) => onTestFinished(fn),
  skip: (reason: string) => context.skip(reason),
})
const nothing = async () => {}

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

test('an event loop with nothing to do is found free', async (context) => {
  const { waited, longest } = await assertFreeLoop(within(context), nothing, () => pause(300))
  expect(waited).toBeGreaterThan(290)
  expect(longest).toBeGreaterThan(0)
})

const found = /event loop was not free in 3 of [3-5] attempts/

test('a wait that blocks it from beginning to end is found', async (context) => {
  await expect(assertFreeLoop(within(context), nothing, async () => block(300))).rejects.toThrow(found)
})

test('a wait that makes it late again and again is found', async (context) => {
  const late = async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      block(40)
      await pause(1)
    }
  }
  await expect(assertFreeLoop(within(context), nothing, late)).rejects.toThrow(found)
})

test('one good attempt among late ones does not make it free, one late among good ones not late', async (context) => {
  const first = (isLate: boolean) => {
    let attempt = 0
    return async () => ((attempt++ === 0) === isLate ? block(300) : pause(300))
  }
  await expect(assertFreeLoop(within(context), nothing, first(false))).rejects.toThrow(found)
  await assertFreeLoop(within(context), nothing, first(true))
})
