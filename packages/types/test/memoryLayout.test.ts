import {
  contiguousStrides,
  describeMemory,
  type MemoryDescriptor,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  toMemoryRange,
  toStridedRange,
} from '@shoal/types'
import { describe, expect, test } from 'vitest'

const base = { version: 1, address: 4096n, byteLength: 96, deviceOrdinal: 0, context: 0n } as const
const f32 = { ...base, dtype: 'f32' } as const
const offered = (answer: object): MemoryLike => ({ [memoryProtocol]: answer as MemoryRange })

describe('contiguous memory', () => {
  test.each([
    [{ shape: [2, 3, 4] }],
    [{ shape: [2, 3, 4], strides: null }],
    [{ shape: [2, 3, 4], strides: [12, 4, 1] }],
    [{ shape: [2, 3, 4], strides: [12, 4, 1], length: 24 }],
    [{ version: 0, shape: [2, 3, 4], strides: [12, 4, 1] }],
    // A single element has no stride.
    [{ shape: [1, 24, 1], strides: [7, 1, 999] }],
    [{ shape: [24] }],
  ])('is accepted: %j', (layout) => {
    expect(toMemoryRange(offered({ ...f32, ...layout }))).toMatchObject({ length: 24, byteLength: 96, dtype: 'f32' })
  })

  test('may have no elements or no dimensions', () => {
    expect(toMemoryRange(offered({ ...f32, shape: [3, 0], strides: [5, 5] })).length).toBe(0)
    expect(toMemoryRange(offered({ ...f32, shape: [] })).length).toBe(1)
  })
})

describe('strided memory', () => {
  test.each([
    ['rows of a wider matrix', { shape: [3, 4], strides: [8, 1] }, '[8,1] for a shape of [3,4]'],
    ['a transposed matrix', { shape: [4, 6], strides: [1, 4] }, '[1,4] for a shape of [4,6]'],
    ['every second element', { shape: [12], strides: [2] }, '[2] for a shape of [12]'],
    ['one element that is repeated', { shape: [24], strides: [0] }, '[0] for a shape of [24]'],
    ['a row that is repeated, beyond its bytes', { shape: [9, 4], strides: [0, 1], length: 36 }, '[0,1]'],
    ['in an answer of version 0', { version: 0, shape: [3, 4], strides: [8, 1] }, '[8,1]'],
  ])('%s: is refused by name, and never read as contiguous', (_, layout, words) => {
    expect(() => toMemoryRange(offered({ ...f32, ...layout }), 'fill', 'target')).toThrow(RangeError)
    expect(() => toMemoryRange(offered({ ...f32, ...layout }), 'fill', 'target')).toThrow(
      `fill: target must be contiguous, not with strides ${words}`,
    )
    expect(toStridedRange(offered({ ...f32, ...layout }))).toMatchObject(
      Object.fromEntries(Object.entries(layout).filter(([key]) => key !== 'version')),
    )
  })

  test('gets a complete layout, even if the answer omitted it', () => {
    expect(toStridedRange(offered({ ...f32, length: 5 }))).toMatchObject({ shape: [5], strides: [1], length: 5 })
    expect(toStridedRange(offered(f32))).toMatchObject({ shape: [24], strides: [1], length: 24 })
    expect(toStridedRange(offered({ ...f32, shape: [2, 3] }))).toMatchObject({ strides: [3, 1], length: 6 })
    expect(contiguousStrides([2, 3, 4])).toEqual([12, 4, 1])
    expect(() => toStridedRange(offered(base), 'toDLPack')).toThrow(
      'toDLPack: memory.dtype must be the name of a dtype, which strides are counted in, not undefined',
    )
  })
})

describe('a malformed memory answer', () => {
  test.each([
    [{ shape: [5, 5] }, RangeError, 'memory.shape must stay within 96 bytes, not reach byte 100'],
    [{ shape: [4, 4], strides: [8, 1] }, RangeError, 'memory.strides must stay within 96 bytes, not reach byte 112'],
    [{ shape: [4, 4], strides: [4] }, RangeError, 'memory.strides must have 2 numbers, as memory.shape, not 1'],
    [{ shape: [4, 4], length: 15 }, RangeError, 'memory.shape must have 15 elements, as memory.length says, not 16'],
    [{ shape: [-1] }, RangeError, 'memory.shape[0] must be an integer from 0'],
    [{ shape: [1.5] }, TypeError, 'memory.shape[0] must be an integer'],
    [{ shape: [2], strides: [-1] }, RangeError, 'memory.strides[0] must be an integer from 0'],
    [{ shape: '4' }, TypeError, "memory.shape must be an array of integers, not '4'"],
    [{ shape: [4], strides: 1 }, TypeError, 'memory.strides must be an array of integers, not 1'],
    [{ strides: [1] }, TypeError, 'memory.shape must be an array where there are strides'],
    [{ shape: new Array(65).fill(1) }, RangeError, 'memory.shape.length must be an integer from 0 to 64'],
    [{ shape: [2 ** 30, 2 ** 30] }, RangeError, 'the product of memory.shape must be'],
    [{ shape: [4], dtype: undefined }, TypeError, 'memory.dtype must be the name of a dtype'],
    [{ stream: 0n }, RangeError, 'memory.stream must be a CUstream, 1n or 2n for a default stream, or null, not 0n'],
    [{ stream: 7 }, TypeError, 'memory.stream must be a bigint, not 7'],
    [{ version: 2 }, TypeError, "memory[Symbol.for('cuda.memory')].version must be 0 or 1, not 2"],
  ])('is refused: %o', (wrong, errorClass, message) => {
    for (const read of [toMemoryRange, toStridedRange]) {
      expect(() => read(offered({ ...f32, ...wrong }))).toThrow(errorClass)
      expect(() => read(offered({ ...f32, ...wrong }))).toThrow(message)
    }
  })
})

describe('a memory description for another thread', () => {
  test('keeps shape, strides and stream of the answer, and is checked like an answer', () => {
    const layout = { shape: [3, 4], strides: [8, 1], stream: 0x5000n }
    const described = structuredClone(describeMemory(offered({ ...f32, ...layout })))
    expect(described).toMatchObject({ ...layout, version: 1, dtype: 'f32' })
    expect(() => toMemoryRange(described)).toThrow('must be contiguous')
    expect(toStridedRange(described)).toMatchObject(layout)
    const wrong: MemoryDescriptor = { ...described, strides: [100, 1] }
    expect(() => toStridedRange(wrong)).toThrow('must stay within 96 bytes')
  })

  test('is refused for a stream handle that means another stream in other threads', () => {
    expect(() => describeMemory(offered({ ...f32, stream: 2n }))).toThrow('describeMemory: memory.stream must be')
    expect(() => describeMemory(offered({ ...f32, shape: [4], strides: [100] }))).not.toThrow(TypeError)
    expect(() => describeMemory(offered({ ...f32, shape: [4, 4], strides: [100, 1] }))).toThrow(RangeError)
  })
})
