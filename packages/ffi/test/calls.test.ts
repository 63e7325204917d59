import { randomBytes, randomInt } from 'node:crypto'
import { NativeMemory, readMemory } from '@shoal/ffi'
import {
  hostConvention,
  lowerCall,
  putArray,
  putBool,
  putCString,
  putHandle,
  putI8,
  putI16,
  putI32,
  putI64,
  putPointer,
  putSize,
  putStruct,
  putU8,
  putU16,
  putU32,
  slots64,
} from '@shoal/ffi/calls'
import { beforeAll, describe, expect, test } from 'vitest'
import { stub } from './fixtures/stub.js'

const library = stub()
const random64 = (): bigint => randomBytes(8).readBigUInt64LE()
let readReceived: (index: number) => bigint

beforeAll(() => {
  const read = library.bindBig('read_received', 0, 1, 'u64')
  readReceived = (index) => {
    putI32(0, index, 'read_received', 'i')
    return read()
  }
})

const received = (count: number): bigint[] => Array.from({ length: count }, (_, index) => readReceived(index))
const signed = (value: number | bigint): bigint => BigInt.asUintN(64, BigInt(value))

describe('words', () => {
  test.each([0, 1, 6, 7, 11, 14, 20])('%i random words arrive in order', (count) => {
    const call = library.bind(`take${count}`, 0, count)
    for (let round = 0; round < 50; round++) {
      const words = Array.from({ length: count }, random64)
      for (const [slot, word] of words.entries()) putHandle(slot, word, 'take', `a${slot}`)
      expect(call()).toBe(count === 0 ? 41 : count)
      expect(received(count)).toEqual(words)
    }
  })

  test('extremes of every integer width arrive unchanged, whatever the slot held before', () => {
    const call = library.bind('take_narrow', 0, 9)
    for (const low of [true, false]) {
      for (let slot = 0; slot < 9; slot++) putHandle(slot, random64(), 'fill', 'junk')
      const values = low
        ? ([-128, 0, -32768, 0, -(2 ** 31), 0, -(2n ** 63n), 0n, -1] as const)
        : ([127, 255, 32767, 65535, 2 ** 31 - 1, 2 ** 32 - 1, 2n ** 63n - 1n, 2n ** 64n - 1n, 1] as const)
      putI8(0, values[0], 'f', 'a')
      putU8(1, values[1], 'f', 'b')
      putI16(2, values[2], 'f', 'c')
      putU16(3, values[3], 'f', 'd')
      putI32(4, values[4], 'f', 'e')
      putU32(5, values[5], 'f', 'f')
      putI64(6, values[6], 'f', 'g')
      putSize(7, values[7], 'f', 'h')
      putI32(8, values[8], 'f', 'i')
      call()
      expect(received(9)).toEqual(values.map(signed))
    }
  })

  test('numbers beyond 32 bits keep their value', () => {
    const call = library.bind('take1', 0, 1)
    for (const value of [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER]) {
      putSize(0, value, 'f', 'n')
      call()
      expect(readReceived(0)).toBe(BigInt(value))
    }
    for (const value of [
      -1,
      -(2 ** 32),
      -(2 ** 32) - 1,
      -(2 ** 31),
      Number.MIN_SAFE_INTEGER,
      Number.MAX_SAFE_INTEGER,
    ]) {
      putI64(0, value, 'f', 'n')
      call()
      expect(readReceived(0)).toBe(signed(value))
    }
  })

  test('results of every kind return', () => {
    expect(library.bind('give_i32', 0, 0, 'i32')()).toBe(-2)
    expect(library.bind('give_u32', 0, 0, 'u32')()).toBe(0xfffffffe)
    expect(library.bind('give_f32', 0, 0, 'f32')()).toBe(1.5)
    expect(library.bind('give_f64', 0, 0, 'f64')()).toBe(0.1)
    expect(library.bind('give_nothing', 0, 0, 'void')()).toBeUndefined()
    expect(readReceived(0)).toBe(77n)
    for (const [kind, want] of [
      ['u64', 2n ** 64n - 1n],
      ['pointer', 2n ** 64n - 1n],
      ['i64', -1n],
    ] as const) {
      const call = library.bindBig('give_word', 0, 1, kind)
      putHandle(0, 2n ** 64n - 1n, 'give_word', 'a')
      expect(call()).toBe(want)
    }
  })
})

describe('memory arguments', () => {
  test('typed arrays, DataViews, ArrayBuffers, shared buffers and NativeMemory pass their address', () => {
    const fill = library.bind('fill', 0, 3)
    const bytes = new Uint8Array(40)
    const memory = NativeMemory.allocate(8)
    const shared = new SharedArrayBuffer(8)
    const targets = [
      bytes.subarray(3, 11),
      new DataView(bytes.buffer, 16, 8),
      new Float64Array(1),
      new ArrayBuffer(8),
      memory,
      shared,
    ]
    for (const [index, target] of targets.entries()) {
      putPointer(0, target, 'fill', 'target')
      putSize(1, 8, 'fill', 'n')
      putI32(2, index + 1, 'fill', 'value')
      expect(fill()).toBe(0)
    }
    expect([...bytes]).toEqual(Array.from({ length: 40 }, (_, i) => (i >= 3 && i < 11 ? 1 : i >= 16 && i < 24 ? 2 : 0)))
    expect([...new Uint8Array((targets[2] as Float64Array).buffer)]).toEqual(Array(8).fill(3))
    expect([...new Uint8Array(targets[3] as ArrayBuffer)]).toEqual(Array(8).fill(4))
    expect([...memory.bytes]).toEqual(Array(8).fill(5))
    expect([...new Uint8Array(shared)]).toEqual(Array(8).fill(6))
  })

  test('memory smaller than the function reads or writes is refused, in every form', () => {
    const bytes = new Uint8Array(32)
    const forms = (byteLength: number): (ArrayBufferView | ArrayBufferLike | NativeMemory)[] => [
      bytes.subarray(0, byteLength),
      new DataView(bytes.buffer, 1, byteLength),
      new ArrayBuffer(byteLength),
      new SharedArrayBuffer(byteLength),
      NativeMemory.allocate(byteLength),
      ...(byteLength % 8 === 0 ? [new Float64Array(byteLength / 8), new Uint16Array(byteLength / 2)] : []),
    ]
    for (const memory of forms(7)) {
      const put = (): void => putPointer(0, memory, 'cuF', 'p', 8)
      expect(put).toThrow(RangeError)
      expect(put).toThrow('cuF: p must be memory of at least 8 bytes, not of 7')
      expect(() => putArray(0, memory, 'cuF', 'p', 8)).toThrow(
        'cuF: p must be memory of at least 8 bytes, or of none, not of 7',
      )
      putPointer(0, memory, 'cuF', 'p')
    }
    for (const memory of forms(8)) for (const put of [putPointer, putArray]) put(0, memory, 'cuF', 'p', 8)
    for (const wide of [new Float64Array(2), new BigInt64Array(1)]) {
      const put = (): void => putPointer(0, wide, 'cuF', 'p', 4)
      expect(put).toThrow(TypeError)
      expect(put).toThrow('cuF: p must be memory for elements of 4 bytes, not an object of class')
      putPointer(0, wide, 'cuF', 'p', 1)
    }
    for (const memory of [new Int32Array(1), new Float32Array(1), new Uint8Array(4), NativeMemory.allocate(4)]) {
      putPointer(0, memory, 'cuF', 'p', 4)
    }
    for (const memory of forms(0)) {
      expect(() => putPointer(0, memory, 'cuF', 'p', 1)).toThrow(RangeError)
      putArray(0, memory, 'cuF', 'p', 8)
    }
    for (const put of [putPointer, putArray]) {
      for (const address of [0n, 1n, null]) put(0, address, 'cuF', 'p', 1 << 20)
      expect(() => put(0, undefined as never, 'cuF', 'p', 8)).toThrow(TypeError)
    }
  })

  test('a forged length property is ignored', () => {
    class FalseLength extends Uint8Array {
      override get byteLength(): number {
        return 1 << 20
      }
    }
    expect(() => putPointer(0, new FalseLength(4), 'cuF', 'p', 8)).toThrow('at least 8 bytes, not of 4')
  })

  test('detached memory has no bytes', () => {
    const detached = new Uint8Array(64)
    structuredClone(detached, { transfer: [detached.buffer] })
    expect(() => putPointer(0, detached, 'cuF', 'p', 8)).toThrow(/not of 0$/)
  })

  test('text arrives as UTF-8, and null as NULL', () => {
    const length = library.bindBig('text_length', 0, 1, 'u64')
    const lengthOf = (text: string | null): bigint => {
      putCString(0, text, 'text_length', 'text')
      return length()
    }
    expect(lengthOf('')).toBe(0n)
    expect(lengthOf('žluť 🐟')).toBe(BigInt(Buffer.byteLength('žluť 🐟')))
    expect(lengthOf(null)).toBe(2n ** 64n - 1n)
  })
})

describe('structures by value', () => {
  test('128 bytes between words arrive, as in ncclCommInitRank', () => {
    const layout = lowerCall(['word', 'word', { bytes: 128 }, 'word'])
    const call = library.bind('by_value_128', 0, layout.slotCount)
    const id = randomBytes(128)
    const pointer = random64()
    putHandle(layout.slot(0), pointer, 'f', 'a')
    putI32(layout.slot(1), -5, 'f', 'b')
    layout.putStruct(2, id, 'f', 'id')
    putI32(layout.slot(3), 9, 'f', 'c')
    call()
    expect(received(3)).toEqual([pointer, signed(-5), 9n])
    expect(received(19).slice(3)).toEqual(Array.from({ length: 16 }, (_, i) => id.readBigUInt64LE(i * 8)))
  })

  test('8 bytes arrive, as the location in cuMemPrefetchAsync', () => {
    const layout = lowerCall(['word', 'word', { bytes: 8 }, 'word', 'word'])
    const call = library.bind('by_value_8', 0, layout.slotCount)
    const [a, b, d] = [random64(), random64(), random64()]
    putHandle(layout.slot(0), a, 'f', 'a')
    putHandle(layout.slot(1), b, 'f', 'b')
    layout.putStruct(2, new Int32Array([-7, 13]), 'f', 'l')
    putI32(layout.slot(3), -1, 'f', 'c')
    putHandle(layout.slot(4), d, 'f', 'd')
    call()
    expect(received(6)).toEqual([a, b, signed(-7), 13n, signed(-1), d])
  })

  test('small structures use the registers left when a large one goes to the stack', () => {
    const parameters = [
      'word',
      'word',
      'word',
      'word',
      'word',
      { bytes: 16 },
      'word',
      { bytes: 24 },
      { bytes: 8 },
      'word',
    ] as const
    const layout = lowerCall(parameters)
    const call = library.bind('by_value_mixed', 0, layout.slotCount)
    const words = Array.from({ length: 14 }, random64)
    words[11] = signed(randomInt(2 ** 31))
    words[12] = signed(-randomInt(2 ** 31))
    const word = (index: number): bigint => words[index] as bigint
    for (let i = 0; i < 5; i++) putHandle(layout.slot(i), word(i), 'f', 'w')
    layout.putStruct(5, BigUint64Array.of(word(5), word(6)), 'f', 'p')
    putHandle(layout.slot(6), word(7), 'f', 'f')
    layout.putStruct(7, BigUint64Array.of(word(8), word(9), word(10)), 'f', 't')
    layout.putStruct(8, BigInt64Array.of((word(12) << 32n) | (word(11) & 0xffff_ffffn)), 'f', 'l')
    putHandle(layout.slot(9), word(13), 'f', 'g')
    call()
    expect(received(14)).toEqual(words)
  })

  test('on other platforms large structures are passed by address, and registers differ', () => {
    expect(hostConvention()).toBe(process.arch === 'arm64' ? 'aapcs64' : 'sysv')
    const parameters = ['word', 'word', { bytes: 128 }, 'word'] as const
    expect(lowerCall(parameters, 'sysv').slotCount).toBe(22)
    expect(lowerCall(parameters, 'aapcs64').slotCount).toBe(4)
    expect(lowerCall(parameters, 'win64').slotCount).toBe(4)
    expect([0, 1, 2, 3].map(lowerCall(parameters, 'sysv').slot)).toEqual([0, 1, 6, 2])
    expect([0, 1, 2, 3].map(lowerCall(['word', { bytes: 16 }, { bytes: 8 }, 'word'], 'win64').slot)).toEqual([
      0, 1, 2, 3,
    ])
  })

  test('a short structure is refused by name', () => {
    expect(() => putStruct(0, new Uint8Array(7), 8, 1, 'cuF', 'location')).toThrow(/cuF: location .*8 bytes.*7 bytes/)
    expect(() => putStruct(0, null as never, 8, 1, 'cuF', 'location')).toThrow(TypeError)
  })
})

describe('integers of each kind', () => {
  const kinds = {
    u8: [putU8, 0n, 2n ** 8n - 1n],
    i8: [putI8, -(2n ** 7n), 2n ** 7n - 1n],
    u16: [putU16, 0n, 2n ** 16n - 1n],
    i16: [putI16, -(2n ** 15n), 2n ** 15n - 1n],
    u32: [putU32, 0n, 2n ** 32n - 1n],
    i32: [putI32, -(2n ** 31n), 2n ** 31n - 1n],
    u64: [putSize, 0n, 2n ** 64n - 1n],
    i64: [putI64, -(2n ** 63n), 2n ** 63n - 1n],
  } as const

  test.each(Object.entries(kinds))(
    '%s accepts its limits and values in between, and refuses values beyond',
    (kind, limits) => {
      const [put, least, most] = limits
      const isWide = kind.endsWith('64')
      const bits = isWide ? 64 : 32
      const given = (value: bigint): never => (Number.isSafeInteger(Number(value)) ? Number(value) : value) as never
      for (const value of [least, least + 1n, least / 2n, 1n, most / 3n, most / 2n, most / 2n + 1n, most - 1n, most]) {
        slots64[3] = 0n
        put(3, given(value), 'cuF', 'h')
        expect(BigInt.asUintN(bits, slots64[3] ?? 0n), `${value}`).toBe(BigInt.asUintN(bits, value))
      }
      const floats = [0.5, -0.5, 2 ** 53, -(2 ** 53), 2 ** 64, Number.NaN, Number.POSITIVE_INFINITY]
      for (const value of [given(least - 1n), given(most + 1n), ...floats]) {
        expect(() => put(3, value as never, 'cuF', 'h'), `${value}`).toThrow(RangeError)
      }
      for (const value of ['1', null, undefined, true, {}, ...(isWide ? [] : [1n])]) {
        expect(() => put(3, value as never, 'cuF', 'h'), `${value}`).toThrow(TypeError)
      }
    },
  )

  test('accept safe numbers far from 0 for 64 bits, without a bigint', () => {
    for (const value of [2 ** 31, 2 ** 32, 2 ** 32 + 5, 2 ** 53 - 1]) {
      putSize(3, value, 'cuF', 'h')
      expect(slots64[3]).toBe(BigInt(value))
      putI64(3, -value, 'cuF', 'h')
      expect(BigInt.asIntN(64, slots64[3] ?? 0n)).toBe(BigInt(-value))
    }
  })
})

test('a structure passed by address is copied, and other values are refused', () => {
  const bytes = Uint8Array.from({ length: 26 }, (_, index) => index)
  const memory = NativeMemory.allocate(26)
  memory.bytes.set(bytes)
  for (const [convention, size] of [
    ['aapcs64', 24],
    ['win64', 3],
  ] as const) {
    const layout = lowerCall(['word', { bytes: size }, 'float'], convention)
    for (const value of [bytes.subarray(2), new DataView(bytes.buffer, 2, size), memory]) {
      layout.putStruct(1, value, 'cuF', 'location')
      const address = slots64[1] as bigint
      const first = value === memory ? 0 : 2
      expect([...readMemory(address, size)]).toEqual([...bytes.subarray(first, first + size)])
    }
    for (const wrong of [bytes.subarray(0, size - 1), 5, null, new ArrayBuffer(size)]) {
      const put = () => layout.putStruct(1, wrong as never, 'cuF', 'location')
      expect(put).toThrow(RangeError)
      expect(put).toThrow(`cuF: location must be a structure of ${size} bytes`)
    }
    layout.putStruct(1, bytes.subarray(0, size), 'cuF', 'location')
    expect(() => layout.putStruct(0, bytes, 'cuF', 'word')).toThrow('cuF: word is not a structure')
    expect(() => layout.putStruct(2, bytes, 'cuF', 'float')).toThrow(TypeError)
    expect(() => layout.slot(3)).toThrow('the call has no parameter 3')
  }
  memory.dispose()
})

test('after a structure that fits no register, smaller arguments use registers or the stack', () => {
  const words = (count: number) => Array<'word'>(count).fill('word')
  const slotsOf = (count: number, convention: 'sysv' | 'aapcs64'): number[] => {
    const { slot } = lowerCall([...words(count), { bytes: 16 }, 'word'], convention)
    return [slot(count), slot(count + 1)]
  }
  expect(slotsOf(5, 'sysv')).toEqual([6, 5])
  expect(slotsOf(4, 'sysv')).toEqual([4, 6])
  expect(slotsOf(7, 'aapcs64')).toEqual([8, 10])
  expect(slotsOf(6, 'aapcs64')).toEqual([6, 8])
})

describe('refusals before the call name function and parameter', () => {
  const refused: [string, () => void, typeof TypeError | typeof RangeError][] = [
    ['a number for a handle', () => putHandle(0, 5 as never, 'cuF', 'h'), TypeError],
    ['undefined for a pointer', () => putPointer(0, undefined as never, 'cuF', 'h'), TypeError],
    ['a plain object for a pointer', () => putPointer(0, {} as never, 'cuF', 'h'), TypeError],
    ['a proxy of an array', () => putPointer(0, new Proxy(new Uint8Array(4), {}), 'cuF', 'h'), TypeError],
    ['a negative handle', () => putHandle(0, -1n, 'cuF', 'h'), RangeError],
    ['a handle of 65 bits', () => putHandle(0, 2n ** 64n, 'cuF', 'h'), RangeError],
    ['NaN as a size', () => putSize(0, Number.NaN, 'cuF', 'h'), RangeError],
    ['a negative size', () => putSize(0, -1, 'cuF', 'h'), RangeError],
    ['a fraction as a size', () => putSize(0, 1.5, 'cuF', 'h'), RangeError],
    ['a size that lost bits', () => putSize(0, 2 ** 53, 'cuF', 'h'), RangeError],
    ['text as a size', () => putSize(0, '4' as never, 'cuF', 'h'), TypeError],
    ['a float as an int', () => putI32(0, 0.5, 'cuF', 'h'), RangeError],
    ['an int out of range', () => putI32(0, 2 ** 31, 'cuF', 'h'), RangeError],
    ['undefined as an int', () => putI32(0, undefined as never, 'cuF', 'h'), TypeError],
    ['a negative unsigned', () => putU32(0, -1, 'cuF', 'h'), RangeError],
    ['256 as a byte', () => putU8(0, 256, 'cuF', 'h'), RangeError],
    ['a number as a bool', () => putBool(0, 1 as never, 'cuF', 'h'), TypeError],
    ['NUL in text', () => putCString(0, 'a\0b', 'cuF', 'h'), TypeError],
  ]
  test.each(refused)('%s', (_, run, type) => {
    expect(run).toThrow(type)
    expect(run).toThrow(/^cuF: h /)
  })
})

test('a function with a float by value is called through koffi', () => {
  expect(library.bindForeign('add_float', 0, 'float %s(float, int)')(1.25, 2)).toBe(3.25)
})
