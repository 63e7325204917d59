import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { Worker } from 'node:worker_threads'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { Particle, randomParticles } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DisposedError, StatusError, SystemError } = await import('@shoal/types')
const { pointerInfo } = await import('@shoal/driver/shared')
const { ExternalMemory } = await import('@shoal/driver/external')
const { MipmappedArray } = await import('@shoal/driver/texture')
const { driver } = await import('@shoal/cuda-sys/driver')
const { bindCall, slots64 } = await import('@shoal/ffi/calls')
const { TestDevice, throwing } = await import('./support/testDevice.js')

const device = new TestDevice(0)
void device.primaryContext
const folder = mkdtempSync(join(tmpdir(), 'shoal-external-'))
let files = 0

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Creates a memory file, as another library would export it. */
function memoryFile(byteLength: number): { readonly descriptor: number; readonly path: string } {
  files += 1
  const path = join(folder, `memory${files}`)
  const descriptor = openSync(path, 'w+')
  ftruncateSync(descriptor, byteLength)
  return { descriptor, path }
}

/** Returns the number of this process's descriptors of a file. */
function openings(path: string): number {
  return readdirSync('/proc/self/fd').filter((number) => linkOf(number) === path).length
}

function linkOf(number: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${number}`)
  } catch {
    return undefined // closed meanwhile
  }
}

// The software device's library is linked with the C library.
const eventfd = bindCall(driver.rawSymbol('eventfd') as bigint, 2, 'i32', 'eventfd')

/** Creates a descriptor that is signaled or not. */
function eventDescriptor(): number {
  slots64[0] = 0n
  slots64[1] = 0n
  return eventfd() as number
}

describe('ExternalMemory', () => {
  test("is mapped as device memory: each side reads the other side's writes", async () => {
    const { descriptor, path } = memoryFile(8192)
    using memory = ExternalMemory.import(device, { type: 'opaque-fd', handle: descriptor, byteLength: 8192 })
    expect([memory.byteLength, memory.device, memory.context]).toEqual([8192, device, device.primaryContext])
    expect(inspect(memory)).toBe('ExternalMemory { device: 0, byteLength: 8192 }')
    using all = memory.map('f32')
    using part = memory.map('u8', { byteOffset: 4000, length: 200 })
    expect([all.length, part.length]).toEqual([2048, 200])
    expect(pointerInfo(device, all.address)).toMatchObject({ type: 'device' })
    all.fillSync(1.5)
    part.fillSync(7)
    const other = openSync(path, 'r+')
    const bytes = new Uint8Array(8192)
    readSync(other, bytes)
    const expected = new Float32Array(2048).fill(1.5)
    new Uint8Array(expected.buffer).fill(7, 4000, 4200)
    expect(new Float32Array(bytes.buffer)).toEqual(expected)
    writeSync(other, Float32Array.of(9), 0, 4, 4)
    closeSync(other)
    expect((await all.toArray())[1]).toBe(9)
  })

  test('supports structs of the program as elements', async () => {
    const values = randomParticles(10)
    const { descriptor } = memoryFile(240)
    using memory = ExternalMemory.import(device, {
      type: 'opaque-fd',
      handle: descriptor,
      byteLength: 240,
      dedicated: true,
    })
    using particles = memory.map(Particle)
    particles.copyFrom(values)
    expect(await particles.toArray()).toEqual(values)
  })

  test('takes ownership of the descriptor, and lives until its last buffer is disposed', () => {
    const { descriptor, path } = memoryFile(4096)
    const memory = ExternalMemory.import(device, { type: 'opaque-fd', handle: descriptor, byteLength: 4096 })
    expect(() => fstatSync(descriptor)).toThrow('EBADF')
    const buffer = memory.map('u8')
    memory.dispose()
    expect(() => memory.handle).toThrow(DisposedError)
    expect(() => memory.map('u8')).toThrow(DisposedError)
    expect(buffer.fillSync(3).toArraySync()[4095]).toBe(3)
    expect(openings(path)).toBe(1)
    buffer.disposeSync()
    expect(openings(path)).toBe(0)
    expect(inspect(memory)).toBe('ExternalMemory { device: 0, byteLength: 4096, disposed: true }')
  })

  test('refuses wrong arguments by name; the descriptor stays the caller’s', () => {
    const { descriptor, path } = memoryFile(64)
    const good = { type: 'opaque-fd', handle: descriptor, byteLength: 64 } as const
    const at = (change: object) => () => ExternalMemory.import(device, { ...good, ...change } as never)
    for (const [act, message] of [
      [() => ExternalMemory.import(3 as never, good), /^ExternalMemory.import: owner must be/],
      [() => ExternalMemory.import(device, 3 as never), /description must be a plain object/],
      [at({ type: 'fd' }), /type must be 'opaque-fd'/],
      [at({ handle: -1 }), /handle must be an integer from 0 to 2147483647, not -1/],
      [at({ handle: '3' }), /handle must be an integer/],
      [at({ type: 'opaque-win32', handle: 3 }), /handle must be a bigint/],
      [at({ byteLength: 0 }), /byteLength must be an integer from 1/],
      [at({ byteLength: 1.5 }), /byteLength must be an integer/],
      [at({ dedicated: 1 }), /dedicated must be a boolean/],
      [at({ size: 1 }), /description must have only the keys/],
    ] as const) {
      expect(act).toThrow(message)
    }
    expect(() => ExternalMemory.import(device, throwing('type') as never)).toThrow('thrown by a getter')
    expect(at({ byteLength: 65 })).toThrow(StatusError)
    expect(at({ type: 'dmabuf-fd' })).toThrow('CUDA_ERROR_NOT_SUPPORTED')
    expect(at({ type: 'd3d12-heap', handle: 5n })).toThrow('CUDA_ERROR_NOT_SUPPORTED')
    const descriptors = eventDescriptor()
    expect(at({ handle: descriptors })).toThrow(StatusError)
    closeSync(descriptors)
    expect(at({ handle: 2 ** 31 - 1 })).toThrow(SystemError)
    expect(at({ handle: 2 ** 31 - 1 })).toThrow(/^ExternalMemory.import: .*EBADF/)
    expect(openings(path)).toBe(1)
    fstatSync(descriptor)
    using memory = ExternalMemory.import(device, good)
    for (const [act, message] of [
      [() => memory.map('f33' as never), /^ExternalMemory.map: dtype must be/],
      [() => memory.map('f32', { byteOffset: 64 }), /byteOffset must be an integer from 0 to 60/],
      [() => memory.map('f32', { length: 17 }), /length must be an integer from 1 to 16, not 17/],
      [() => memory.map('f32', { byteOffset: 62 }), /byteOffset must be an integer from 0 to 60/],
      [() => memory.map('f32', { byteOffset: 6 }), /byteOffset must be a multiple of 4 for f32/],
      [() => memory.map('u16', { byteOffset: 3 }), /byteOffset must be a multiple of 2 for u16/],
      [() => memory.map('f32', 5 as never), /options must be a plain object/],
    ] as const) {
      expect(act).toThrow(message)
    }
  })
})

test('a worker that opened the imported descriptor never closes another file that later reuses its number', async () => {
  const { descriptor, path } = memoryFile(64)
  const program = `
    const { openSync } = require('node:fs')
    const { parentPort } = require('node:worker_threads')
    const warnings = []
    process.on('warning', ({ message }) => warnings.push(message))
    const entry = (name) => import(${JSON.stringify(new URL('../dist/', import.meta.url).href)} + name + '.js')
    Promise.all([entry('shared'), entry('external')]).then(([{ Device, startDriver, driverLibrary }, { ExternalMemory }]) => {
      startDriver()
      const device = new Device(0, 0, driverLibrary)
      const bring = (handle) => ExternalMemory.import(device, { type: 'opaque-fd', handle, byteLength: 64 }).dispose()
      const own = openSync(${JSON.stringify(path)}, 'r+')
      bring(own)
      bring(${descriptor})
      setImmediate(() => parentPort.postMessage([own, warnings]))
    })`
  const worker = new Worker(program, { eval: true })
  const [own, warnings] = await new Promise<[number, string[]]>((resolve, reject) =>
    worker.once('message', resolve).once('error', reject),
  )
  expect(warnings).toEqual([])
  // The release thread closes the descriptors.
  await vi.waitFor(() => expect(openings(path)).toBe(0), { timeout: 60_000 })
  // New files take the lowest free numbers.
  const files: number[] = []
  while (!files.includes(own)) files.push(openSync(path, 'r'))
  await worker.terminate()
  for (const file of files) {
    expect(fstatSync(file).size).toBe(64)
    closeSync(file)
  }
})

describe('MipmappedArray.fromExternal', () => {
  const shape = { width: 8, height: 4, format: 'f32', levels: 2 } as const
  const make = (byteLength = 8192) => {
    const { descriptor, path } = memoryFile(byteLength)
    return {
      memory: ExternalMemory.import(device, { type: 'opaque-fd', handle: descriptor, byteLength }),
      path,
    }
  }

  test('creates an array in the memory, which stays alive as long as the array', async () => {
    const { memory, path } = make()
    const array = MipmappedArray.fromExternal(memory, { ...shape, byteOffset: 512 })
    memory.dispose()
    const values = Float32Array.from({ length: 32 }, (_, at) => at)
    array.level(0).copyFromSync(values)
    array.level(1).copyFromSync(values.slice(0, 8))
    expect(await array.level(0).toArray()).toEqual(values)
    const bytes = new Uint8Array(128)
    const other = openSync(path, 'r')
    readSync(other, bytes, 0, 128, 512)
    closeSync(other)
    expect(new Float32Array(bytes.buffer)).toEqual(values)
    expect(openings(path)).toBe(1)
    array.disposeSync()
    expect(openings(path)).toBe(0)
  })

  test.each([
    [{ byteOffset: 8192 }, /byteOffset must be an integer from 0 to 8191/],
    [{ byteOffset: 0.5 }, /byteOffset must be an integer/],
    [{ levels: 5 }, /levels must be an integer from 1 to 4/],
    [{ sparse: true }, /only the keys/],
    [{ byteOffset: 8000 }, /CUDA_ERROR_INVALID_VALUE/],
    [{ width: 1024, height: 1024 }, /CUDA_ERROR_INVALID_VALUE/],
  ])('refuses %o, and keeps the memory', (options, words) => {
    const { memory, path } = make()
    expect(() => MipmappedArray.fromExternal(memory, { ...shape, ...options } as never)).toThrow(words)
    memory.disposeSync()
    expect(openings(path)).toBe(0)
  })

  test('refuses other memory objects, and disposed memory', () => {
    expect(() => MipmappedArray.fromExternal(device as never, shape)).toThrow(/memory must be an ExternalMemory/)
    const { memory } = make()
    expect(() => MipmappedArray.fromExternal(memory, throwing('levels') as never)).toThrow('thrown by a getter')
    memory.dispose()
    expect(() => MipmappedArray.fromExternal(memory, shape)).toThrow(DisposedError)
  })
})
