import { Communicator, group } from '@shoal/nccl'
import { ncclGroupEnd, ncclResult_t } from '@shoal/nccl-sys'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'
import { makeRefusingDriver, refused } from './fixtures/refusingDriver.js'

makeRefusingDriver()
let communicator: Communicator
let stream: TestStream
let memory: TestMemory

beforeAll(async () => {
  startSoftwareDevice()
  communicator = (await Communicator.initAll([0]))[0] as Communicator
  stream = new TestStream(0)
  memory = TestMemory.from(0, new Float32Array([5]))
})

afterAll(async () => {
  await communicator.destroy()
})

/** Checks with NCCL that no group is open on this thread. */
function expectNoGroup(): void {
  expect(ncclGroupEnd()).toBe(ncclResult_t.ncclInvalidUsage)
}

// Results of the driver. 1, 3 and 4 are also results of NCCL, 709 is not.
const statuses = [1, 3, 4, 709]

test.each(statuses)("a collective whose context fails with %i throws the driver's error", (status) => {
  const error = refused(status, () => errorOf(() => communicator.allReduce(memory, memory, { stream })))
  expect(error).toMatchObject({ library: 'CUDA driver', api: 'cuCtxSetCurrent', status })
})

test.each(statuses)('a group ends even if its context fails with %i', (status) => {
  refused(status, () => group(() => communicator.broadcast(memory, memory, { root: 0, stream })))
  expectNoGroup()
  stream.wait()
  const own = errorOf(() =>
    refused(status, () =>
      group(() => {
        communicator.allReduce(memory, memory, { stream })
        throw new Error('mine')
      }),
    ),
  )
  expect(own).toEqual(new Error('mine'))
  expect(own).not.toHaveProperty('suppressed')
  expectNoGroup()
})

test('an NCCL error stays an NCCL error if the context is healthy', () => {
  memory.override = { address: 0n }
  const error = errorOf(() => communicator.allReduce(memory, memory, { stream }))
  memory.override = {}
  expect(error).toMatchObject({ library: 'NCCL', api: 'ncclAllReduce', code: 'ncclInvalidArgument' })
})
