import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Communicator } from '@shoal/nccl'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { libraries, libraryFolder } from '../../sim/src/index.js'
import { connected } from './fixtures/connected.js'
import { rejection, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

// If the driver can report the end of a context's work, destroy() and finalize() wait for that first. Such a wait can
// end early: then the communicator is really aborted, and no thread stays behind.

const folder = mkdtempSync(join(tmpdir(), 'shoal-context-events-'))

beforeAll(() => {
  const library = join(folder, 'libcuda.so.1')
  const source = fileURLToPath(new URL('fixtures/contextEvents.cc', import.meta.url))
  const software = join(libraryFolder(), libraries.cuda)
  const link = ['-Wl,--no-as-needed', software, `-Wl,-rpath,${libraryFolder()}`, '-ldl']
  const define = `-DSOFTWARE_DRIVER="${software}"`
  execFileSync('g++', ['-std=c++17', '-shared', '-fPIC', define, '-o', library, source, ...link])
  process.env['SHOAL_CUDA_LIBRARY'] = library
  startSoftwareDevice()
})

afterAll(() => rmSync(folder, { recursive: true }))

let communicators: [Communicator, Communicator]
let memory: [TestMemory, TestMemory]
let streams: [TestStream, TestStream]
const warnings: string[] = []
process.on('warning', (warning) => warnings.push(`${warning.name}: ${warning.message}`))

beforeEach(async () => {
  delete process.env['SHOAL_TEST_REFUSAL']
  communicators = await connected((await Communicator.initAll([0, 1])) as typeof communicators)
  memory = [TestMemory.from(0, new Float32Array([1])), TestMemory.from(1, new Float32Array([2]))]
  streams = [new TestStream(0), new TestStream(1)]
})

function allReduce(rank: 0 | 1): void {
  communicators[rank].allReduce(memory[rank], memory[rank], { stream: streams[rank] })
}

test.each([
  ['destroy', 'tells'],
  ['finalize', 'tells'],
  ['destroy', 'cannot tell'],
  ['finalize', 'cannot tell'],
] as const)('%s waits for the work of the device; the driver %s when it completes', async (how, driver) => {
  if (driver === 'cannot tell') process.env['SHOAL_TEST_REFUSAL'] = '801'
  allReduce(0)
  let isOver = false
  const over = communicators[0][how]().then(() => (isOver = true))
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(isOver).toBe(false)
  allReduce(1)
  await Promise.all([over, communicators[1][how]()])
  expect(memory.flatMap((one) => one.floats())).toEqual([3, 3])
  await Promise.all(communicators.map((one) => one.destroy()))
})

const reasons = ['timeout', 'signal', 'abort', 'async-error'] as const
const endings = (['tells', 'cannot tell'] as const).flatMap((driver) =>
  (['destroy', 'finalize'] as const).flatMap((how) => reasons.map((reason) => [how, reason, driver] as const)),
)

test.each(endings)('%s rejects for good by %s; the driver %s when the work completes', async (how, reason, driver) => {
  if (driver === 'cannot tell') process.env['SHOAL_TEST_REFUSAL'] = '801'
  allReduce(0)
  const abort = new AbortController()
  const start = performance.now()
  const options = reason === 'timeout' ? { timeout: 100 } : reason === 'signal' ? { signal: abort.signal } : {}
  const waiting = rejection(communicators[0][how](options))
  await new Promise((resolve) => setTimeout(resolve, 50))
  if (reason === 'signal') abort.abort()
  else if (reason === 'abort') await communicators[0].abort()
  else if (reason === 'async-error') await communicators[1].abort()
  expect(await waiting).toMatchObject({ operation: how, reason, rank: 0 })
  expect(performance.now() - start).toBeLessThan(30_000)
  await expect.poll(() => streams[0].isIdle()).toBe(true)
  await communicators[0].abort()
  await communicators[0]
    .destroy()
    .catch((error: unknown) => expect(error).toMatchObject({ operation: 'destroy', reason }))
  await communicators[1].abort()
  expect(warnings).toEqual([])
})
