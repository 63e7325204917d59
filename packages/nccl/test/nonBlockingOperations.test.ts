import { Communicator, group, groupOffThread, UniqueId } from '@shoal/nccl'
import { StatusError } from '@shoal/types'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

let communicators: Communicator[]
let streams: TestStream[]
let memory: TestMemory[]

beforeAll(async () => {
  startSoftwareDevice()
  const id = UniqueId.create()
  communicators = await Promise.all(
    [0, 1].map((rank) => Communicator.initRank({ device: rank, rank, worldSize: 2, id, config: { blocking: false } })),
  )
  streams = communicators.map(({ deviceOrdinal }) => new TestStream(deviceOrdinal))
  memory = communicators.map(({ deviceOrdinal }) => TestMemory.from(deviceOrdinal, new Float32Array([1])))
})

afterAll(async () => {
  await Promise.all(communicators.map((communicator) => communicator.destroy()))
})

function allReduceBoth(): void {
  for (const [rank, communicator] of communicators.entries()) {
    const one = memory[rank] as TestMemory
    communicator.allReduce(one, one, { stream: streams[rank] as TestStream })
  }
}

function values(): number[] {
  for (const stream of streams) stream.wait()
  return memory.flatMap((one) => one.floats())
}

test('groupOffThread resolves once the work of a non-blocking communicator is queued', async () => {
  await groupOffThread(allReduceBoth)
  expect(values()).toEqual([2, 2])
  await groupOffThread(allReduceBoth)
  expect(values()).toEqual([4, 4])
})

test('a plain group of a non-blocking communicator becomes ready after it returns', async () => {
  group(allReduceBoth)
  await Promise.all(communicators.map((communicator) => communicator.ready()))
  expect(values()).toEqual([8, 8])
})

test('an error of the group rejects groupOffThread on a non-blocking communicator', async () => {
  const foreign = (streams[1] as TestStream).handle
  const one = memory[0] as TestMemory
  const failed = groupOffThread(() => communicators[0]?.allReduce(one, one, { stream: foreign }))
  await expect(failed).rejects.toBeInstanceOf(StatusError)
  expect(values()).toEqual([8, 8])
})

test('memory, registrations and reductions work on a non-blocking communicator', async () => {
  const [communicator] = communicators as [Communicator]
  await using own = await communicator.allocate({ dtype: 'f32', length: 4 })
  using registration = communicator.register(own)
  expect(registration.isEffective).toBe(true)
  using op = communicator.createPreMulSum(2, { dtype: 'f32' })
  expect(op.dtype).toBe('f32')
})
