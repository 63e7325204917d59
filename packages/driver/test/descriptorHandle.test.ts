import { once } from 'node:events'
import { closeSync, fstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import { DescriptorHandle } from '@shoal/driver/shared'
import { DisposedError } from '@shoal/types'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { memoryFacts, openNull } from './support/handleFacts.js'

test('DescriptorHandle owns its descriptor and serializes its other properties as data', () => {
  const descriptor = openNull()
  const handle = new DescriptorHandle(descriptor, memoryFacts)
  expect(handle).toMatchObject({ type: 'posix-fd', ...memoryFacts, disposed: false })
  expect(handle.descriptor).toBe(descriptor)
  expect(JSON.parse(JSON.stringify(handle))).toEqual({ type: 'posix-fd', ...memoryFacts })
  handle.dispose()
  handle.dispose()
  expect(() => fstatSync(descriptor)).toThrow('EBADF')
  expect(() => handle.descriptor).toThrow(DisposedError)
  expect(handle.toJSON()).toEqual({ type: 'posix-fd', ...memoryFacts })
})

test('DescriptorHandle is closed at the end of its block', () => {
  const descriptor = openNull()
  {
    using handle = new DescriptorHandle(descriptor, { content: 'pool', byteLength: 0 })
    expect(handle.toJSON()).toEqual({ type: 'posix-fd', content: 'pool', byteLength: 0 })
  }
  expect(() => fstatSync(descriptor)).toThrow('EBADF')
})

test('DescriptorHandle is closed with the worker that created it', async () => {
  const file = join(scratchFolder(), 'given')
  const program = `
    const { openSync } = require('node:fs')
    import(${JSON.stringify(import.meta.resolve('@shoal/driver/shared'))}).then(async ({ DescriptorHandle }) => {
      const { duplicateDescriptor } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi'))})
      const descriptor = duplicateDescriptor(openSync(${JSON.stringify(file)}, 'w'))
      globalThis.handle = new DescriptorHandle(descriptor, { content: 'pool', byteLength: 0 })
      require('node:worker_threads').parentPort.on('message', () => undefined).postMessage('made')
    })`
  const worker = new Worker(program, { eval: true })
  await once(worker, 'message')
  expect(descriptorsOf(file)).toHaveLength(2)
  await worker.terminate()
  expect(descriptorsOf(file)).toEqual([])
})

/** Returns this process's descriptors of a file. Their numbers can be reused for other files later. */
function descriptorsOf(file: string): string[] {
  return readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === file
    } catch {
      return false // closed meanwhile
    }
  })
}

test('DescriptorHandle is closed with a warning after it was dropped', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const warnings: string[] = []
  const listen = (warning: Error): void => void warnings.push(warning.message)
  process.on('warning', listen)
  const descriptors = Array.from({ length: 3 }, openNull)
  const drop = (): void => {
    for (const descriptor of descriptors) new DescriptorHandle(descriptor, memoryFacts)
  }
  drop()
  const isOpen = (descriptor: number): boolean => {
    try {
      fstatSync(descriptor)
      return true
    } catch {
      return false
    }
  }
  for (let round = 0; round < 50 && descriptors.some(isOpen); round += 1) {
    collect()
    await setImmediate()
  }
  process.off('warning', listen)
  expect(descriptors.filter(isOpen)).toEqual([])
  const [first] = descriptors
  expect(warnings).toContain(`DescriptorHandle ${first} was dropped without dispose(); its descriptor is closed`)
})

test('DescriptorHandle is closed in a worker without the warning of Node about unknown descriptors', async () => {
  const descriptor = openNull()
  const program = `
    const { parentPort } = require('node:worker_threads')
    const warnings = []
    process.on('warning', ({ message }) => warnings.push(message))
    import(${JSON.stringify(new URL('../dist/index.js', import.meta.url).href)}).then(({ DescriptorHandle }) => {
      new DescriptorHandle(${descriptor}, { content: 'pool', byteLength: 0 }).dispose()
      setImmediate(() => parentPort.postMessage(warnings))
    })`
  const worker = new Worker(program, { eval: true })
  const warnings = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  await worker.terminate()
  expect(warnings).toEqual([])
  expect(() => fstatSync(descriptor)).toThrow('EBADF')
})

test('a worker that opened the descriptor itself forgets it once the handle closes it', async () => {
  const program = `
    const { openSync } = require('node:fs')
    const { parentPort } = require('node:worker_threads')
    import(${JSON.stringify(new URL('../dist/index.js', import.meta.url).href)}).then(({ DescriptorHandle }) => {
      const descriptor = openSync('/dev/null')
      new DescriptorHandle(descriptor, { content: 'pool', byteLength: 0 }).dispose()
      parentPort.postMessage(descriptor)
    })`
  const worker = new Worker(program, { eval: true })
  const number = await new Promise<number>((resolve, reject) => worker.once('message', resolve).once('error', reject))
  const files: number[] = []
  while (!files.includes(number)) files.push(openNull())
  await worker.terminate()
  for (const file of files) {
    fstatSync(file)
    closeSync(file)
  }
})

const keys = 'type, content, byteLength, deviceUuid'
test.each([
  [-1, memoryFacts, RangeError, 'descriptor must be an integer from 0 to 2147483647, not -1'],
  [2 ** 31, memoryFacts, RangeError, 'descriptor must be an integer from 0 to 2147483647, not 2147483648'],
  [1.5, memoryFacts, TypeError, 'descriptor must be an integer from 0 to 2147483647, not 1.5'],
  ['1', memoryFacts, TypeError, "descriptor must be an integer from 0 to 2147483647, not '1'"],
  [0, undefined, TypeError, 'facts must be a plain object such as { type, content, byteLength }, not undefined'],
  [
    0,
    { ...memoryFacts, content: 'stream' },
    TypeError,
    "facts.content must be 'memory', 'pool' or 'multicast', not 'stream'",
  ],
  [0, { ...memoryFacts, type: 'fabric' }, TypeError, "facts.type must be 'posix-fd', not 'fabric'"],
  [0, { ...memoryFacts, device: 0 }, TypeError, `facts must have only the keys ${keys}, not 'device'`],
  [0, { ...memoryFacts, byteLength: 0 }, RangeError, 'facts.byteLength must be an integer from 1 to 2^53 - 1, not 0'],
  [0, { ...memoryFacts, byteLength: -1 }, RangeError, 'facts.byteLength must be an integer from 1 to 2^53 - 1, not -1'],
  [0, { ...memoryFacts, byteLength: 2 ** 60 }, RangeError, 'facts.byteLength must be an integer from 1 to 2^53 - 1'],
  [
    0,
    { ...memoryFacts, byteLength: '5' },
    TypeError,
    "facts.byteLength must be an integer from 1 to 2^53 - 1, not '5'",
  ],
  [0, { ...memoryFacts, deviceUuid: 5 }, TypeError, 'facts.deviceUuid must be a string, not 5'],
  [
    0,
    { ...memoryFacts, deviceUuid: 'x'.repeat(65) },
    RangeError,
    'facts.deviceUuid must be at most 64 characters, not 65',
  ],
])('DescriptorHandle refuses %s with %j', (descriptor, facts, kind, message) => {
  const make = (): unknown => new DescriptorHandle(descriptor as number, facts as typeof memoryFacts)
  expect(make).toThrow(kind)
  expect(make).toThrow(`DescriptorHandle: ${message}`)
})

test('DescriptorHandle is printed in one line, also after dispose()', () => {
  const handle = new DescriptorHandle(openNull(), { content: 'multicast', byteLength: 5 })
  const line = "DescriptorHandle { type: 'posix-fd', content: 'multicast', byteLength: 5"
  expect(inspect(handle)).toBe(`${line} }`)
  handle.dispose()
  expect(inspect(handle)).toBe(`${line}, disposed: true }`)
})

test('importing DescriptorHandle does not load the driver', () => {
  expect(readFileSync('/proc/self/maps', 'utf8')).not.toContain('libshoal-sim-cuda')
})
