import { inspect } from 'node:util'
import { DisposedError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { DeviceBuffer } = await import('@shoal/driver/shared')
const { TensorMap } = await import('@shoal/driver/texture')
const { TestDevice, throwing } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const matrix = DeviceBuffer.zeros(device, 'f32', 64 * 64)
const whole = { dimensions: [64, 64], box: [32, 8] }
const pictures = {
  dimensions: [16, 4, 4, 4],
  lowerCorner: [-1, -1],
  upperCorner: [0, 0],
  channelsPerPixel: 16,
  pixelsPerColumn: 32,
}

describe('TensorMap.tiled', () => {
  test('encodes 128 bytes, which differ for other options', () => {
    const map = TensorMap.tiled(matrix, whole)
    expect(map.bytes).toHaveLength(128)
    expect(map.bytes).toEqual(TensorMap.tiled(matrix, { ...whole, dtype: 'f32', strides: [256] }).bytes)
    for (const options of [
      { swizzle: '128B' },
      { l2Promotion: '256B' },
      { outOfBoundsFill: 'nan' },
      { elementStrides: [1, 2] },
      { dtype: 'tf32' },
      { box: [32, 16] },
    ] as const) {
      expect(TensorMap.tiled(matrix, { ...whole, ...options }).bytes, inspect(options)).not.toEqual(map.bytes)
    }
    expect([map.parameterType, map.memory, inspect(map)]).toEqual([
      'tensorMap',
      matrix,
      'TensorMap { byteLength: 16384 }',
    ])
  })

  test('of one dimension passes no strides, although the driver requires a pointer', () => {
    const row = TensorMap.tiled(matrix, { dimensions: [64 * 64], box: [32] })
    expect(row.bytes).not.toEqual(TensorMap.tiled(matrix, { dimensions: [64 * 64], box: [16] }).bytes)
  })

  test('can be moved to other memory', () => {
    using other = DeviceBuffer.zeros(device, 'f32', 64 * 64)
    const map = TensorMap.tiled(matrix, whole)
    expect(map.replaceAddress(other).bytes).toEqual(TensorMap.tiled(other, whole).bytes)
    expect(() => map.replaceAddress(other.slice(0, 64))).toThrow(/memory must be of at least 16384 bytes/)
    expect(() => map.replaceAddress(other.slice(1))).toThrow(/memory must be memory at a multiple of 16 bytes/)
    expect(() => map.replaceAddress(new Float32Array(1) as never)).toThrow(TypeError)
    expect(map.memory).toBe(other)
  })

  test.each([
    [{ dimensions: [] }, /dimensions must be of 1 to 5 numbers/],
    [{ dimensions: [64, 0] }, /dimensions\[1\] must be an integer from 1/],
    [{ dimensions: [64, 65] }, /memory must be of at least 16640 bytes/],
    [{ dimensions: [63, 64] }, /strides\[0\] must be a multiple of 16 .*give strides/],
    [{ strides: [256, 1] }, /strides must be of 1 numbers/],
    [{ strides: [8] }, /strides\[0\] must be a multiple of 16/],
    [{ box: [32] }, /box must be of 2 numbers/],
    [{ box: [257, 1] }, /box\[0\] must be an integer from 1 to 256/],
    [{ box: [3, 1] }, /box\[0\] must be elements of a multiple of 16 bytes/],
    [{ swizzle: '64B' }, /box\[0\] must be elements of at most 64 bytes/],
    [{ swizzle: '99B' }, /swizzle must be/],
    [{ interleave: '16B' }, /dimensions must be of 3 to 5 numbers/],
    [{ interleave: '32B' }, /swizzle must be '32B' with interleave '32B'/],
    [{ elementStrides: [1, 9] }, /elementStrides\[1\] must be an integer from 1 to 8/],
    [{ dtype: 'i8' }, /dtype must be/],
    [{ dtype: 'u32', outOfBoundsFill: 'nan' }, /outOfBoundsFill must be 'zeros' for u32/],
    [{ dtype: 'u4x16-align16' }, /dimensions\[0\] must be a multiple of 128/],
    [{ l2Promotion: 64 }, /l2Promotion must be/],
    [{ boxes: [1] }, /options must have only the keys/],
  ])('refuses %o', (options, words) => {
    expect(() => TensorMap.tiled(matrix, { ...whole, ...options } as never)).toThrow(words)
  })

  test('refuses other values than memory, and disposed memory', () => {
    const gone = DeviceBuffer.zeros(device, 'f32', 64 * 64)
    gone.dispose()
    expect(() => TensorMap.tiled(gone, whole)).toThrow(DisposedError)
    expect(() => TensorMap.tiled(7 as never, whole)).toThrow(TypeError)
    expect(() => TensorMap.tiled(matrix, { ...throwing('dimensions'), box: [1] })).toThrow('thrown by a getter')
  })
})

describe('TensorMap.im2col', () => {
  test('encodes the corners of boxes', () => {
    const map = TensorMap.im2col(matrix, pictures)
    expect(map.bytes).not.toEqual(TensorMap.im2col(matrix, { ...pictures, lowerCorner: [-2, -1] }).bytes)
    expect(map.bytes).not.toEqual(TensorMap.im2col(matrix, { ...pictures, pixelsPerColumn: 33 }).bytes)
  })

  test.each([
    [{ dimensions: [64, 64] }, /dimensions must be of 3 to 5 numbers/],
    [{ lowerCorner: [-1] }, /lowerCorner must be of 2 numbers/],
    [{ upperCorner: [0, 128] }, /upperCorner\[1\] must be an integer from -128 to 127/],
    [{ channelsPerPixel: 257 }, /channelsPerPixel must be an integer from 1 to 256/],
    [{ channelsPerPixel: 3 }, /channelsPerPixel must be elements of a multiple of 16 bytes/],
    [{ pixelsPerColumn: 1025 }, /pixelsPerColumn must be an integer from 1 to 1024/],
    [{ mode: 'w' }, /options must have only the keys/],
  ])('refuses %o', (options, words) => {
    expect(() => TensorMap.im2col(matrix, { ...pictures, ...options } as never)).toThrow(words)
  })
})

describe('TensorMap.im2colWide', () => {
  const { lowerCorner: _, upperCorner: __, ...rest } = pictures
  const wide = { ...rest, lowerCornerWidth: -1, upperCornerWidth: 1 }
  test('encodes corners that have only a width', () => {
    const words = new Uint32Array(TensorMap.im2colWide(matrix, { ...wide, mode: 'w128' }).bytes.slice().buffer)
    expect(words[14]).toBe(0x00_01_00_ff)
  })

  test.each([
    [{ mode: 'h' }, /mode must be/],
    [{ lowerCornerWidth: -(2 ** 15) - 1 }, /lowerCornerWidth must be an integer from -32768 to 32767/],
    [{ upperCornerWidth: 0.5 }, /upperCornerWidth/],
  ])('refuses %o', (options, words) => {
    expect(() => TensorMap.im2colWide(matrix, { ...wide, ...options } as never)).toThrow(words)
  })
})
