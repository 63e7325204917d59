import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'

process.env['SHOAL_DEVICE'] ??= 'sim'
const { assertFreeLoop } = await import('@shoal/conformance')

const t = { defer: (fn: () => void | Promise<void>) => onTestFinished(fn) }
const nothing = async () => {}

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

test('an event loop with nothing to do is found free', async () => {
  const { waited, longest } = await assertFreeLoop(t, nothing, () => pause(300))
  expect(waited).toBeGreaterThan(290)
  expect(longest).toBeGreaterThan(0)
})

const found = /event loop was not free|never calm enough/

test('a wait that blocks it from beginning to end is found', async () => {
  await expect(assertFreeLoop(t, nothing, async () => block(300))).rejects.toThrow(found)
})

test('a wait that makes it late again and again is found', async () => {
  const late = async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      block(40)
      await pause(1)
    }
  }
  await expect(assertFreeLoop(t, nothing, late)).rejects.toThrow(found)
})
