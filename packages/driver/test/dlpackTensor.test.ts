import { inspect } from 'node:util'
import { memoryProtocol, toStridedRange } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
import { collectUntil, type RawTensor, tensorAddon } from './support/tensors.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, Stream } = await import('@shoal/driver/shared')
const { DLPackCapsule, fromDLPack, toDLPack } = await import('@shoal/driver/dlpack')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const addon = tensorAddon()

beforeEach(() => {
  expect([device.used, second.used]).toEqual([0, 0])
  addon.deletions()
})

describe('fromDLPack', () => {
  test('takes ownership of an External or an address, and calls the deleter once', async () => {
    using buffer = DeviceBuffer.from(
      device,
      Float32Array.from({ length: 24 }, (_, index) => index),
    )
    for (const kind of [{}, { external: 1 }, { major: 1 }, { major: 1, external: 1 }] as const) {
      const versioned = 'major' in kind
      const tensor = fromDLPack(addon.make({ ...kind, data: buffer.address, byteOffset: 16, shape: [4, 5] }), {
        versioned,
      })
      expect(tensor).toMatchObject({
        shape: [4, 5],
        strides: [5, 1],
        length: 20,
        byteLength: 80,
        dtype: 'f32',
        deviceType: 'cuda',
      })
      using view = DeviceBuffer.view(device, tensor, 'f32')
      expect(await view.toArray()).toEqual(Float32Array.from({ length: 20 }, (_, index) => index + 4))
      tensor.dispose()
      tensor.dispose()
      expect(addon.deletions()).toBe(1)
      expect(() => view.toArraySync()).toThrow('DLPackTensor')
      expect(() => tensor[memoryProtocol]).toThrow('DLPackTensor')
    }
  })

  test('exposes strided memory with its strides, and the stream from the options', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 32)
    using stream = Stream.create(device)
    using tensor = fromDLPack(addon.make({ data: buffer.address, shape: [4, 4], strides: [8, 1] }), { stream })
    expect(tensor[memoryProtocol]).toMatchObject({
      version: 1,
      shape: [4, 4],
      strides: [8, 1],
      stream: stream.handle,
      byteLength: 112,
    })
    expect(() => DeviceBuffer.view(device, tensor, 'f32')).toThrow('DeviceBuffer.view: memory must be contiguous')
    expect(inspect(tensor)).toBe("DLPackTensor { dtype: 'f32', shape: '[4,4]', deviceType: 'cuda', deviceOrdinal: 0 }")
  })

  test('may have more elements than bytes if a stride is 0', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    using tensor = fromDLPack(addon.make({ data: buffer.address, shape: [8, 4], strides: [0, 1] }))
    expect(tensor).toMatchObject({ length: 32, byteLength: 16 })
    expect(toStridedRange(tensor)).toMatchObject({ shape: [8, 4], strides: [0, 1], length: 32, byteLength: 16 })
    using again = fromDLPack(toDLPack(tensor))
    expect(again).toMatchObject({ shape: [8, 4], strides: [0, 1] })
  })

  test('accepts a missing deleter, and tensors without elements or dimensions', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 1)
    fromDLPack(addon.make({ shape: [0, 3], noDeleter: 1 })).dispose()
    fromDLPack(addon.make({ data: buffer.address, shape: [] })).dispose()
    fromDLPack(addon.make({ data: buffer.address, ndim: 0 })).dispose()
    expect(addon.deletions()).toBe(2)
  })

  test('the garbage collector calls the deleter of a dropped tensor, and warns', async () => {
    const warnings: string[] = []
    const note = (warning: Error): void => void warnings.push(warning.message)
    process.on('warning', note)
    ;(() => void fromDLPack(addon.make({ shape: [0] })))()
    let deletions = 0
    await collectUntil(() => {
      deletions += addon.deletions()
      return deletions > 0 && warnings.length > 0
    })
    process.off('warning', note)
    expect(deletions).toBe(1)
    expect(warnings[0]).toContain('A DLPackTensor of 0 bytes was dropped without dispose(); its deleter is called now')
  })

  const refused: [RawTensor, new () => Error, string][] = [
    [{ lanes: 4 }, RangeError, 'capsule.dtype.lanes must be 1'],
    [{ bits: 48 }, TypeError, "capsule.dtype must be a type that has a dtype here, not 'code 2 with 48 bits'"],
    [{ code: 3, bits: 64 }, TypeError, 'capsule.dtype must be'],
    [
      { deviceType: 10 },
      TypeError,
      "capsule.device must be memory of the host or of CUDA, not 'device type 10 of DLPack'",
    ],
    [{ deviceId: -1 }, RangeError, 'capsule.device.device_id must be from 0, not -1'],
    [{ ndim: -1 }, RangeError, 'capsule.ndim must be from 0 to 64, not -1'],
    [{ ndim: 65 }, RangeError, 'capsule.ndim must be'],
    [{ shape: [-2] }, RangeError, 'capsule.shape[0] must be an integer from 0'],
    [{ strides: [-1] }, RangeError, 'capsule.strides[0] must be an integer from 0'],
    [{ shape: [2 ** 40, 2 ** 40] }, RangeError, 'capsule.shape must be of less than 2^53 bytes'],
    [{ data: 0n }, RangeError, 'capsule.data must be an address other than 0'],
    [{ major: 2 }, RangeError, "capsule.version must be of DLPack 1.x, not '2.0'"],
  ]
  test.each(refused)('refuses %o and leaves ownership with the caller', (wrong, errorClass, message) => {
    const versioned = wrong.major !== undefined
    const address = addon.make({ data: 4096n, shape: [4], ...wrong }) as bigint
    expect(() => fromDLPack(address, { versioned })).toThrow(errorClass)
    expect(() => fromDLPack(address, { versioned })).toThrow(`fromDLPack: ${message}`)
    expect(addon.deletions()).toBe(0)
    addon.end(address, versioned, 1)
  })

  test('refuses a missing shape', () => {
    const address = addon.make({ data: 4096n, ndim: 2 }) as bigint
    expect(() => fromDLPack(address)).toThrow('fromDLPack: capsule.shape must be of 2 numbers, not null')
    addon.end(address, false, 1)
  })

  test.each([
    [
      undefined,
      TypeError,
      'fromDLPack: capsule must be a DLPackCapsule, an External or the address of a tensor, not undefined',
    ],
    [{}, TypeError, 'not a plain object'],
    [4096, TypeError, 'not 4096'],
    [0n, RangeError, 'capsule must be the address of a tensor, a multiple of 8, not 0n'],
    [4097n, RangeError, 'not 4097n'],
    [-1n, RangeError, 'capsule must be'],
  ])('refuses %o', (capsule, errorClass, message) => {
    expect(() => fromDLPack(capsule as never)).toThrow(errorClass)
    expect(() => fromDLPack(capsule as never)).toThrow(message)
  })

  test('accepts a capsule, and detects its version', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 4)
    using capsule = toDLPack(buffer, { versioned: true })
    expect(() => fromDLPack(capsule, { versioned: false })).toThrow(
      'fromDLPack: versioned must be true, as the capsule is',
    )
    expect(capsule).toBeInstanceOf(DLPackCapsule)
    using tensor = fromDLPack(capsule)
    expect([capsule.taken, tensor.length]).toEqual([true, 4])
  })
})
