import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { driver } from '@shoal/cuda-sys/driver'
import { defineLibrary, setContextFunctions } from '@shoal/ffi'
import { putI32 } from '@shoal/ffi/calls'
import { Communicator, group } from '@shoal/nccl'
import { ncclGroupEnd, ncclResult_t } from '@shoal/nccl-sys'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

const folder = mkdtempSync(join(tmpdir(), 'shoal-refusing-driver-'))
const refusing = defineLibrary({
  id: 'refusing',
  title: 'a driver that refuses contexts',
  environment: 'SHOAL_TEST_REFUSING_LIBRARY',
  linux: [],
  hint: 'made by this test',
})
let communicator: Communicator
let stream: TestStream
let memory: TestMemory

beforeAll(async () => {
  const library = join(folder, 'refusing.so')
  const source = fileURLToPath(new URL('fixtures/refusingDriver.cc', import.meta.url))
  execFileSync('g++', ['-shared', '-fPIC', '-o', library, source])
  refusing.setPath(library)
  startSoftwareDevice()
  communicator = (await Communicator.initAll([0]))[0] as Communicator
  stream = new TestStream(0)
  memory = TestMemory.from(0, new Float32Array([5]))
})

afterAll(async () => {
  await communicator.destroy()
  rmSync(folder, { recursive: true })
})

/** Calls `fn` while no context can be made current: the driver answers `status`. */
function refused<T>(status: number, fn: () => T): T {
  const answerWith = refusing.bind('answer_with', 0, 1, 'void')
  putI32(0, status, 'answer_with', 'status')
  answerWith()
  setContextFunctions(refusing.address('get_current'), refusing.address('set_current'))
  try {
    return fn()
  } finally {
    setContextFunctions(driver.address('cuCtxGetCurrent', 4000), driver.address('cuCtxSetCurrent', 4000))
  }
}

/** NCCL itself says whether a group was left open on this thread. */
function expectNoGroup(): void {
  expect(ncclGroupEnd()).toBe(ncclResult_t.ncclInvalidUsage)
}

// 1, 3 and 4 are results of NCCL as well, 709 is not.
const statuses = [1, 3, 4, 709]

test.each(statuses)('a collective whose context is refused with %i is an error of the driver', (status) => {
  const error = refused(status, () => errorOf(() => communicator.allReduce(memory, memory, { stream })))
  expect(error).toMatchObject({ library: 'CUDA driver', api: 'cuCtxSetCurrent', status })
})

test.each(statuses)('a group ends also where its context is refused with %i', (status) => {
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

test('an error of NCCL stays one where the context is well', () => {
  memory.override = { address: 0n }
  const error = errorOf(() => communicator.allReduce(memory, memory, { stream }))
  memory.override = {}
  expect(error).toMatchObject({ library: 'NCCL', api: 'ncclAllReduce', code: 'ncclInvalidArgument' })
})
