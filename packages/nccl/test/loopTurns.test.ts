import { Communicator, groupOffThread } from '@shoal/nccl'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loopTurns } from '../../ffi/test/support/loopTurns.js'
import { startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

let blocking: Communicator
let nonBlocking: Communicator
let stream: TestStream
let memory: TestMemory

beforeAll(async () => {
  startSoftwareDevice()
  const [one] = await Communicator.initAll([0])
  const [other] = await Communicator.initAll([0], { config: { blocking: false } })
  ;[blocking, nonBlocking] = [one as Communicator, other as Communicator]
  stream = new TestStream(0)
  memory = TestMemory.zeros(0, 'f32', 4)
})

afterAll(async () => {
  for (const communicator of [blocking, nonBlocking]) await communicator.destroy()
})

const awaitables: { readonly [name: string]: () => PromiseLike<unknown> } = {
  'Communicator.ready': () => blocking.ready(),
  'Communicator.ready, not blocking,': () => nonBlocking.ready(),
  'Communicator.synchronize': () => blocking.synchronize(stream),
  'Communicator.synchronize, not blocking,': () => nonBlocking.synchronize(stream),
  'groupOffThread of nothing': () => groupOffThread(() => undefined),
  groupOffThread: () => groupOffThread(() => blocking.allReduce(memory, memory, { stream })),
  'Communicator.allocate': async () => (await blocking.allocate(64)).free(),
}

test.each(Object.entries(awaitables))('%s in a loop lets the event loop turn', async (_, call) => {
  expect(await loopTurns(call)).toBe(true)
})
