import * as driver from '@shoal/cuda-sys/driver'
import * as runtime from '@shoal/cuda-sys/runtime'
import type { StructCodec } from '@shoal/ffi'
import { describe, expect, test } from 'vitest'
import { readSpec } from './spec.js'

type AnyCodec = StructCodec<Record<string, unknown>>

function codecsOf(module: object): [string, AnyCodec][] {
  return Object.entries(module).filter((entry): entry is [string, AnyCodec] => {
    const value = entry[1] as Partial<AnyCodec> | undefined
    return (
      typeof value === 'object' && value !== null && typeof value.read === 'function' && typeof value.size === 'number'
    )
  })
}

/** Returns bytes that differ from each other and from zero, the same in each run. */
function pattern(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (index * 37 + 11) & 0x7f)
}

describe.each([
  ['driver', driver],
  ['runtime', runtime],
] as const)('%s', (name, module) => {
  const codecs = codecsOf(module)
  const count = readSpec(name).structs.length

  test('has a codec for every struct', () => {
    expect(new Set(codecs.map(([, codec]) => codec)).size).toBe(count)
  })

  test.each(codecs)('%s: a value that was read can be written, and reads the same', (_struct, codec) => {
    const bytes = pattern(codec.size)
    const value = codec.read(bytes)
    expect(Object.keys(value)).toEqual(Object.keys(codec.offsets))
    const copy = codec.allocate(value)
    expect(copy.byteLength).toBe(codec.size)
    expect(codec.read(copy)).toEqual(value)
    for (const offset of Object.values(codec.offsets)) expect(offset).toBeLessThan(codec.size)
    expect(codec.size % codec.alignment).toBe(0)
    expect(() => codec.read(bytes.subarray(1))).toThrow(RangeError)
  })
})

test('structs have the sizes of the C header', () => {
  expect(runtime.cudaPointerAttributes.size).toBe(88)
  expect(runtime.cudaResourceDesc.size).toBe(144)
  expect(runtime.cudaResourceViewDesc.size).toBe(112)
  expect(driver.CUlaunchAttribute.alignment).toBe(8)
  expect(driver.CUlaunchAttributeValue.alignment).toBe(8)
  expect(driver.CUtensorMap).toMatchObject({ size: 128, alignment: 128 })
  expect(driver.CUeglFrame).toMatchObject({ size: 64, alignment: 8 })
  expect(runtime.cudaEglFrame).toMatchObject({ size: 280, alignment: 8 })
  expect(driver.CUDA_MEMCPY2D_v1).toMatchObject({ size: 96, alignment: 8 })
})

test('the codec of an EGL frame has planes as arrays or addresses at the same offset', () => {
  const frame = driver.CUeglFrame.allocate({
    frame: driver.CUeglFrame_frame.read(new BigUint64Array([1n, 2n, 3n])),
    width: 640,
    height: 480,
    pitch: 2560,
    planeCount: 3,
    frameType: driver.CUeglFrameType.CU_EGL_FRAME_TYPE_PITCH,
    eglColorFormat: driver.CUeglColorFormat.CU_EGL_COLOR_FORMAT_YUV420_PLANAR,
    cuFormat: driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8,
  })
  expect(driver.CUeglFrame.read(frame)).toMatchObject({
    frame: { pArray: [1n, 2n, 3n], pPitch: [1n, 2n, 3n] },
    width: 640,
    frameType: 1,
    cuFormat: 1,
  })
})
