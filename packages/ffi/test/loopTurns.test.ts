import { DescriptorSocket, NativeMemory, offThread } from '@shoal/ffi'
import { doneNow, isLoopDue, settledNow } from '@shoal/types'
import { expect, test } from 'vitest'
import { holdThread, loopTurns } from './support/loopTurns.js'

test('receiving buffered messages in a loop lets the event loop turn', async () => {
  const [one, other] = DescriptorSocket.pair()
  const message = { bytes: Uint8Array.of(1) }
  for (let count = 0; count < 3; count += 1) await one.send(message)
  expect(await loopTurns(() => other.receive())).toBe(true)
  expect(await loopTurns(() => one.send(message))).toBe(true)
  for (const end of [one, other]) end.dispose()
})

test('calls on native threads in a loop let the event loop turn', async () => {
  using memory = NativeMemory.allocate(8)
  expect(await loopTurns(() => offThread({ keep: [memory] }, () => undefined))).toBe(true)
})

test('rapid awaits go through the event loop after 2 ms, or within seven more awaits', async () => {
  await new Promise((resolve) => setImmediate(resolve))
  let hasTurned = false
  setImmediate(() => {
    hasTurned = true
  })
  for (let count = 0; count < 20; count += 1) await doneNow()
  expect(hasTurned).toBe(false)
  holdThread(3)
  for (let count = 0; count < 8; count += 1) expect(await settledNow(count)).toBe(count)
  expect(hasTurned).toBe(true)
})

test('a turn of the event loop restarts the 2 ms interval', async () => {
  await doneNow()
  holdThread(3)
  await new Promise((resolve) => setTimeout(resolve, 1))
  await new Promise((resolve) => setImmediate(resolve))
  expect(isLoopDue()).toBe(false)
})
