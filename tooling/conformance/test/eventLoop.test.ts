import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { delayWhile, isFree } from '../src/support/eventLoop.js'

const nothing = async () => {}

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

test('an event loop with nothing to do is found free', async () => {
  expect(await delayWhile(nothing, () => pause(200))).toSatisfy(isFree)
})

test('a wait that blocks it once is found, also one that does so from beginning to end', async () => {
  const whole = await delayWhile(nothing, async () => block(100))
  expect(whole.longest).toBeGreaterThan(90)
  expect(whole).not.toSatisfy(isFree)
  const middle = await delayWhile(nothing, async () => {
    await pause(100)
    block(60)
    await pause(100)
  })
  expect(middle.longest).toBeGreaterThan(50)
  expect(middle).not.toSatisfy(isFree)
})

test('a wait that makes it late all the time is found', async () => {
  const late = await delayWhile(nothing, async () => {
    for (let turn = 0; turn < 30; turn += 1) {
      block(8)
      await pause(1)
    }
  })
  expect(late.p99).toBeGreaterThan(5)
  expect(late).not.toSatisfy(isFree)
})
