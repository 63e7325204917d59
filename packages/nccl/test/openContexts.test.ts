import { Communicator, group } from '@shoal/nccl'
import { beforeAll, expect, test } from 'vitest'
import { contextOf, startSoftwareDevice } from './fixtures/device.js'
import { contextOfCalls, makeRefusingDriver } from './fixtures/refusingDriver.js'

makeRefusingDriver()
beforeAll(startSoftwareDevice)

// NCCL reads the current context when a group ends.
test('a group ends in the context of the communicator that has been open longest, unless that context is current', async () => {
  const [first, second] = await Communicator.initAll([2, 1])
  const [third] = await Communicator.initAll([1])
  const last = await Communicator.initAll([0])
  const contextOfGroup = (current?: bigint): bigint => contextOfCalls(() => group(() => undefined), current)
  expect(contextOfGroup()).toBe(contextOf(2))
  expect(contextOfGroup(contextOf(1))).toBe(contextOf(2))
  expect(contextOfGroup(contextOf(2))).toBe(0n)
  await Promise.all([first, second].map((communicator) => communicator?.destroy()))
  expect(contextOfGroup()).toBe(contextOf(1))
  await third?.destroy()
  expect(contextOfGroup()).toBe(contextOf(0))
  await last[0]?.destroy()
  expect(contextOfGroup()).toBe(0n)
})
