import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Communicator, group, ncclVersion, UniqueId } from '@shoal/nccl'
import { DisposedError, StatusError, VersionTooOldError } from '@shoal/types'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

const folder = mkdtempSync(join(tmpdir(), 'shoal-old-nccl-'))
let communicator: Communicator
let stream: TestStream
let memory: TestMemory

beforeAll(async () => {
  const library = join(folder, 'libnccl.so.2')
  const source = fileURLToPath(new URL('fixtures/oldNccl.cc', import.meta.url))
  execFileSync('g++', ['-shared', '-fPIC', '-o', library, source])
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

const tooOld = (since: string) => ({
  code: 'SHOAL_VERSION_TOO_OLD',
  library: expect.stringContaining('NCCL'),
  since,
  installed: '2.3.4',
})

test('NCCL 2.3.4 reports its version, and its functions work', () => {
  expect(ncclVersion().toString()).toBe('2.3.4')
  expect(UniqueId.create().toBytes()).toEqual(new Uint8Array(128).fill(7))
  group(() => communicator.allReduce(memory, memory, { stream }))
})

test('functions that NCCL 2.3.4 lacks throw an error with the needed and the installed version', async () => {
  const average = errorOf(() => communicator.allReduce(memory, memory, { op: 'avg', stream }))
  expect(average).toBeInstanceOf(VersionTooOldError)
  expect(average).toMatchObject(tooOld('2.10.3'))
  expect((average as Error).message).toContain('2.3.4 is installed')
  const float8 = TestMemory.zeros(0, 'f8e4m3', 4)
  expect(errorOf(() => communicator.allReduce(float8, float8, { stream }))).toMatchObject(tooOld('2.24.3'))
  // Bytes can still be moved.
  communicator.broadcast(float8, float8, { root: 0, stream })
  float8.dispose()
  expect(errorOf(() => communicator.asyncError())).toMatchObject(tooOld('2.4.2'))
  const [other] = (await Communicator.initAll([1])) as [Communicator]
  await expect(other.finalize()).rejects.toMatchObject(tooOld('2.14.3'))
  await other.destroy()
  expect(() => other.handle).toThrow(DisposedError)
})

test('an error without ncclGetLastError has all other parts', () => {
  const error = errorOf(() => communicator.allReduce(memory, memory, { stream, count: 3 }))
  expect(error).toBeInstanceOf(StatusError)
  expect(error).toMatchObject({
    api: 'ncclAllReduce',
    status: 4,
    code: 'ncclInvalidArgument',
    description: 'an argument is invalid',
    isSticky: false,
    libraryVersion: '2.3.4',
  })
  expect((error as StatusError).lastError).toBeUndefined()
})

test('with NCCL 2.3.4 a failed init throws, and the next one works', async () => {
  const id = UniqueId.create()
  const failed = Communicator.initRank({ device: 1, rank: 1, worldSize: 2, id })
  await expect(failed).rejects.toMatchObject({ api: 'ncclCommInitRank', code: 'ncclInvalidArgument' })
  const next = await Communicator.initRank({ device: 1, rank: 0, worldSize: 2, id })
  await next.abort()
})

test('NCCL 2.3.4 has no config and no derived communicators', async () => {
  const id = UniqueId.fromBytes(new Uint8Array(128))
  const config = Communicator.initRank({ device: 1, rank: 0, worldSize: 1, id, config: { blocking: false } })
  await expect(config).rejects.toMatchObject({ ...tooOld('2.14.3'), api: 'ncclConfig_t' })
  await expect(Communicator.initAll([1], { config: {} })).rejects.toMatchObject(tooOld('2.14.3'))
  const scalable = Communicator.initRank({ device: 1, rank: 0, worldSize: 2, id: [id, id] })
  await expect(scalable).rejects.toMatchObject(tooOld('2.23.4'))
  const joining = Communicator.joinGrown({ device: 1, rank: 1, worldSize: 2, id })
  await expect(joining).rejects.toMatchObject(tooOld('2.29.2'))
  const [other] = (await Communicator.initAll([1])) as [Communicator]
  await expect(other.split({ color: 0 })).rejects.toMatchObject(tooOld('2.18.1'))
  await expect(other.grow({ worldSize: 2 })).rejects.toMatchObject(tooOld('2.29.2'))
  await expect(other.suspend()).rejects.toMatchObject(tooOld('2.29.7'))
  expect(errorOf(() => other.properties())).toMatchObject(tooOld('2.29.2'))
  expect(errorOf(() => other.memoryStatistics())).toMatchObject(tooOld('2.29.7'))
  expect(errorOf(() => other.createUniqueId())).toMatchObject(tooOld('2.29.2'))
  // This library does not report errors either, so only signals and time limits end a wait.
  await other.synchronize(null, { timeout: 10_000 })
  await other.destroy()
})

test('a group that fails in fn and at its end reports both errors', () => {
  const refusedCall = errorOf(() => group(() => communicator.allReduce(memory, memory, { stream, count: 3 })))
  expect(refusedCall).toMatchObject({ api: 'ncclAllReduce', suppressed: { api: 'ncclGroupEnd', status: 4 } })
  const own = errorOf(() =>
    group(() => {
      communicator.allReduce(memory, memory, { stream })
      throw new Error('mine')
    }),
  )
  expect(own).toMatchObject({ message: 'mine' })
  expect(own).not.toHaveProperty('suppressed')
})

test('a file that is not a library is refused with the message of the loader', () => {
  const file = join(folder, 'text.so')
  writeFileSync(file, 'this is no library')
  const script =
    "import('@shoal/nccl').then(({ ncclVersion }) => ncclVersion()).catch((e) => console.log(e.code, e.message))"
  const output = execFileSync(process.execPath, ['-e', script], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, SHOAL_NCCL_LIBRARY: file },
    encoding: 'utf8',
  })
  expect(output).toContain('SHOAL_LIBRARY_NOT_FOUND')
  expect(output).toContain(file)
  expect(output).toMatch(/ELF|too short|invalid/)
})
