import { beforeAll, describe, expect, test } from 'vitest'
import { runFixture } from './support/fixtureProcess.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, IpcMemory, ipcMemoryHandle, Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const buffer = DeviceBuffer.from(device, Float32Array.of(1, 2, 3, 4))

/** The other process's report about `buffer.slice(1, 3)`. */
let told: { readonly [step: string]: unknown }

beforeAll(async () => {
  const handle = JSON.stringify(ipcMemoryHandle(buffer.slice(1, 3)))
  const { stdout, stderr, code } = await runFixture(
    new URL('./fixtures/ipcMemory.mjs', import.meta.url),
    { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' },
    { arguments: [handle] },
  )
  expect(code, stderr).toBe(0)
  told = JSON.parse(stdout.trim().split('\n').at(-1) as string)
})

describe('IpcMemory of another process', () => {
  test('is the same memory, at the offset in the handle', () => {
    expect(told).toMatchObject({ facts: { dtype: 'f32', length: 2, byteLength: 8 }, before: [2, 3] })
    expect([...buffer.toArraySync()]).toEqual([1, 7, 7, 4])
  })

  test('and its buffer throw after dispose(); a second dispose() does nothing', () => {
    expect(told).toMatchObject({
      disposed: true,
      afterwards: expect.stringMatching(/^DisposedError: IpcMemory was disposed/),
      ofBuffer: expect.stringMatching(/^DisposedError: /),
    })
  })

  test('stays open after disposal until a call on another thread has finished with it', () => {
    expect(told['openness']).toEqual([true, true, false])
  })

  test('refuses more elements than the memory has, and misaligned addresses', () => {
    expect(told['tooLong']).toMatch(/^RangeError: IpcMemory\.open: handle\.byteOffset must be /)
    expect(told['misaligned']).toBe(
      'RangeError: IpcMemory.open: handle.byteOffset must be a multiple of 4 for f32, not 2',
    )
  })

  test('refuses another device than the one that owns the memory', () => {
    expect(told['otherDevice']).toMatch(/^RangeError: IpcMemory\.open: device must be the device of the memory/)
    expect(told['hiddenDevice']).toMatch(/^FeatureNotSupportedError: .*which this process does not see/)
  })

  test('refuses other values than a handle', () => {
    expect(told['noHandle']).toMatch(/^TypeError: IpcMemory\.open: handle must be what ipcMemoryHandle\(\) returned/)
  })

  test('is printed in one line', () => {
    expect(told['printed']).toBe("IpcMemory { dtype: 'f32', length: 2, deviceOrdinal: 0 }")
  })
})

describe('ipcMemoryHandle', () => {
  test('is refused for stream-ordered memory and for other values', () => {
    using stream = Stream.create(device)
    using ofStream = DeviceBuffer.allocateOn(stream, 'f32', 4)
    expect(() => ipcMemoryHandle(ofStream)).toThrow('only memory from DeviceBuffer.allocate, from or zeros')
    expect(() => ipcMemoryHandle(DeviceBuffer.allocate(device, 'f32', 0))).toThrow(RangeError)
  })

  test('cannot be opened in the process that made the handle', () => {
    expect(() => IpcMemory.open(device, ipcMemoryHandle(buffer))).toThrow('a process cannot open handles of its own')
  })
})
