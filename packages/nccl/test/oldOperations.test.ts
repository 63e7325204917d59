import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Communicator, group, groupOffThread, llA2ASlots, NcclMemory, NcclParameter, simulateGroup } from '@shoal/nccl'
import { VersionTooOldError } from '@shoal/types'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

// Tests operations that are newer than NCCL 2.3.4, with a library of that version.

const folder = mkdtempSync(join(tmpdir(), 'shoal-old-nccl-'))
let communicator: Communicator
let stream: TestStream
let memory: TestMemory

beforeAll(async () => {
  const library = join(folder, 'libnccl.so.2')
  execFileSync('g++', [
    '-shared',
    '-fPIC',
    '-o',
    library,
    fileURLToPath(new URL('fixtures/oldNccl.cc', import.meta.url)),
  ])
  startSoftwareDevice()
  process.env['SHOAL_NCCL_LIBRARY'] = library
  communicator = (await Communicator.initAll([0]))[0] as Communicator
  stream = new TestStream(0)
  memory = TestMemory.zeros(0, 'f32', 4)
})

afterAll(async () => {
  await communicator.destroy()
  rmSync(folder, { recursive: true })
})

const operations: [since: string, call: () => unknown][] = [
  ['2.7.3', () => communicator.send(memory, { peer: 0, stream })],
  ['2.7.3', () => communicator.recv(memory, { peer: 0, stream })],
  ['2.28.3', () => communicator.allToAll(memory, TestMemory.zeros(0, 'f32', 4), { stream })],
  ['2.28.3', () => communicator.gather(memory, memory, { root: 0, stream })],
  ['2.28.3', () => communicator.scatter(memory, memory, { root: 0, stream })],
  ['2.11.4', () => communicator.createPreMulSum(2, { dtype: 'f32' })],
  ['2.19.3', () => communicator.register(memory)],
  ['2.28.3', () => communicator.team('world')],
  ['2.28.3', () => llA2ASlots(1, 1)],
  ['2.22.3', () => simulateGroup(() => communicator.allReduce(memory, memory, { stream }))],
  ['2.29.2', () => communicator.signal({ peer: 0, stream })],
  ['2.29.2', () => communicator.waitSignal({ peer: 0 }, { stream })],
  ['2.30.3', () => NcclParameter.keys()],
  ['2.30.3', () => NcclParameter.bind('NCCL_DEBUG')],
  ['2.30.3', () => NcclParameter.dump()],
]

test.each(operations)('NCCL 2.3.4 requires %s: %s', (since, call) => {
  const error = errorOf(call)
  expect(error).toBeInstanceOf(VersionTooOldError)
  expect(error).toMatchObject({ since, installed: '2.3.4' })
  // No group is left open or incomplete.
  group(() => communicator.allReduce(memory, memory, { stream }))
})

test('too new operations in a group throw, and the group still ends', async () => {
  const both = () => {
    communicator.allReduce(memory, memory, { stream })
    communicator.send(memory, { peer: 0, stream })
  }
  expect(errorOf(() => group(both))).toMatchObject({ since: '2.7.3' })
  await expect(groupOffThread(both)).rejects.toMatchObject({ since: '2.7.3' })
  group(() => communicator.allReduce(memory, memory, { stream }))
  await groupOffThread(() => communicator.allReduce(memory, memory, { stream }))
})

test('too new asynchronous operations reject', async () => {
  const failures = [
    [() => NcclMemory.allocate(0, 4096), '2.19.3'],
    [() => communicator.allocate(4096), '2.19.3'],
    [() => communicator.registerWindow(memory, { symmetric: false }), '2.27.3'],
    [() => communicator.createDeviceCommunicator(), '2.28.3'],
  ] as const
  for (const [call, since] of failures) await expect(call()).rejects.toMatchObject({ since, installed: '2.3.4' })
  communicator.allReduce(memory, memory, { stream })
})
