import { callInContext, defineLibrary, NativeMemory, offThread, type Parameter, type ResultTypes } from '@shoal/ffi'
import { LibraryNotFoundError, StatusError, SymbolNotFoundError } from '@shoal/types'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { build } from './fixtures/stub.js'

// One function per kind that returns its argument, and some with several arguments.
const kinds = {
  i8: 'int8_t',
  u8: 'uint8_t',
  i16: 'int16_t',
  u16: 'uint16_t',
  i32: 'int32_t',
  u32: 'uint32_t',
  i64: 'int64_t',
  u64: 'uint64_t',
  isize: 'ptrdiff_t',
  usize: 'size_t',
  f32: 'float',
  f64: 'double',
  bool: 'bool',
  ptr: 'void*',
  cstring: 'const char*',
} as const
type Kind = keyof typeof kinds

const library = defineLibrary({
  id: 'signatures',
  title: 'Signatures',
  environment: 'SHOAL_TEST_SIGNATURES',
  linux: ['libshoaltestsignatures.so'],
  hint: 'build it',
  statusText: (status) => (status === 7 ? { name: 'SIGNATURES_BUSY', description: 'try again' } : undefined),
})
library.setPath(
  build(
    'libsignatures.so',
    `#include <stdbool.h>
     #include <stddef.h>
     #include <stdint.h>
     typedef struct { int64_t x, y; } point;
     typedef struct { uint8_t bytes[128]; } id;
     extern "C" {
     ${Object.entries(kinds)
       .map(([kind, type]) => `${type} same_${kind}(${type} value) { return value; }`)
       .join('\n')}
     int status(int value) { return value; }
     void nothing(void) {}
     int set_point(point* target, int64_t x, int64_t y) { target->x = x; target->y = y; return 0; }
     double mixed(float a, int b, double c, uint8_t d, float e) { return a + b + c + d + e; }
     int64_t product(point p, double by) { return (int64_t)(p.x * p.y * by); }
     point mirrored(point p) { point m = {p.y, p.x}; return m; }
     id filled(uint8_t value) { id all; for (uint8_t& byte : all.bytes) byte = value; return all; }
     int last_of(id all, int index) { return all.bytes[index]; }
     int64_t eleven(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g, int64_t h, int64_t i,
                    int64_t j, int64_t k) { return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k; }
     }`,
    ['-x', 'c++'],
  ),
)

const same = (kind: Kind): ((value: unknown) => unknown) =>
  library.function(`same_${kind}`, { parameters: [`value: ${kind}`] as never, result: kind }) as never

const arriving: [kind: Kind, given: unknown, returned?: unknown][] = [
  ['i8', -128],
  ['i8', 127],
  ['u8', 255],
  ['i16', -32768],
  ['u16', 65535],
  ['i32', -(2 ** 31)],
  ['u32', 2 ** 32 - 1],
  ['i64', -(2n ** 63n)],
  ['i64', -5, -5n],
  ['u64', 2n ** 64n - 1n],
  ['isize', Number.MIN_SAFE_INTEGER, BigInt(Number.MIN_SAFE_INTEGER)],
  ['usize', 2 ** 40, 2n ** 40n],
  ['f32', 0.1, Math.fround(0.1)],
  ['f64', 0.1],
  ['f64', Number.NEGATIVE_INFINITY],
  ['bool', true],
  ['bool', false],
  ['ptr', 2n ** 48n],
  ['ptr', null, 0n],
  ['cstring', 'žralok'],
  ['cstring', null],
]

const refused: [kind: Kind, given: unknown, error: typeof TypeError | typeof RangeError, expected: RegExp][] = [
  ['i8', 128, RangeError, /an integer between -128 and 127/],
  ['u8', -1, RangeError, /an integer between 0 and 255/],
  ['i16', 2 ** 15, RangeError, /an integer between -32768 and 32767/],
  ['u16', 1.5, RangeError, /an integer between 0 and 65535/],
  ['i32', 2 ** 31, RangeError, /an integer between/],
  ['u32', '1', TypeError, /an integer between/],
  ['i64', 2n ** 63n, RangeError, /between -2\^63 and 2\^63 - 1/],
  ['u64', -1n, RangeError, /between 0 and 2\^64 - 1/],
  ['isize', 2 ** 53, RangeError, /a safe integer or a bigint/],
  ['usize', -1, RangeError, /a non-negative safe integer or a bigint/],
  ['f32', 1n, TypeError, /a number/],
  ['f64', '0.5', TypeError, /a number/],
  ['bool', 1, TypeError, /a boolean/],
  ['ptr', undefined, TypeError, /an address \(bigint\), memory/],
  ['ptr', 4096, TypeError, /an address \(bigint\), memory/],
  ['cstring', 'a\0b', TypeError, /text without a NUL character/],
]

describe('a function bound by its signature', () => {
  test.each(arriving)('passes and returns %s: %s', (kind, given, returned = given) => {
    expect(same(kind)(given)).toBe(returned)
  })

  test('is tested with every kind', () => {
    expect(new Set(arriving.map(([kind]) => kind))).toEqual(new Set(Object.keys(kinds)))
    expect(new Set(refused.map(([kind]) => kind))).toEqual(new Set(Object.keys(kinds)))
  })

  test.each(refused)('refuses wrong values for %s: %s', (kind, given, error, expected) => {
    const call = same(kind)
    expect(() => call(given)).toThrow(error)
    expect(() => call(given)).toThrow(expected)
    expect(() => call(given)).toThrow(new RegExp(`^same_${kind}: value must be `))
  })

  test('accepts floats and integers in any order, and more arguments than registers', () => {
    const mixed = library.function('mixed', { parameters: ['f32', 'i32', 'f64', 'u8', 'f32'], result: 'f64' })
    expect(mixed(0.5, -3, 0.25, 200, 8)).toBe(205.75)
    const parameters = Array.from({ length: 11 }, (_, index) => `a${index}: i64` as const)
    const eleven = library.function('eleven', { parameters, result: 'i64' })
    expect(eleven(...parameters.map((_, index) => index + 1))).toBe(506n)
  })

  test('writes to memory of all kinds', () => {
    const setPoint = library.function('set_point', { parameters: ['target: ptr', 'x: i64', 'y: i64'], result: 'i32' })
    const array = new BigInt64Array(2)
    expect(setPoint(array, -1, 2n)).toBe(0)
    expect([...array]).toEqual([-1n, 2n])
    const memory = NativeMemory.allocate(16)
    for (const target of [memory, memory.address]) {
      memory.u64.fill(0n)
      setPoint(target, 3, 4)
      expect([...memory.u64]).toEqual([3n, 4n])
    }
  })

  test('passes and returns structures by value', () => {
    const point = { name: 'point', bytes: 16 } as const
    const product = library.function('product', { parameters: [point, 'by: f64'], result: 'i64' })
    const mirrored = library.function('mirrored', { parameters: [point], result: { bytes: 16 } })
    const three = new BigInt64Array([3n, 4n])
    expect(product(three, 2)).toBe(24n)
    const first = mirrored(three)
    mirrored(new BigInt64Array(2))
    expect([...new BigInt64Array(first.buffer)]).toEqual([4n, 3n])
    expect(() => product(new Uint8Array(15), 2)).toThrow(
      new RangeError('product: point must be a structure of 16 bytes, not of 15 bytes'),
    )
    const filled = library.function('filled', { parameters: ['u8'], result: { bytes: 128 } })
    const lastOf = library.function('last_of', { parameters: [{ bytes: 128 }, 'index: i32'], result: 'i32' })
    expect(lastOf(filled(9), 127)).toBe(9)
  })

  test('returns nothing for void, and throws a status that is not 0', () => {
    expect(library.function('nothing', { parameters: [], result: 'void' })()).toBeUndefined()
    const status = library.function('status', { parameters: ['value: i32'], result: 'status' })
    expect(status(0)).toBeUndefined()
    const error = (value: number): unknown => {
      try {
        return status(value)
      } catch (caught) {
        return caught
      }
    }
    expect(error(7)).toBeInstanceOf(StatusError)
    expect(error(7)).toMatchObject({ api: 'status', code: 'SIGNATURES_BUSY', description: 'try again', status: 7 })
    expect(error(-8)).toMatchObject({ library: 'Signatures', code: 'status -8', status: -8 })
  })

  test('refuses too many and too few arguments, and restores the context of the call', () => {
    const status = library.function('status', { parameters: ['value: i32'], result: 'i32' }) as (
      ...values: number[]
    ) => number
    callInContext(12345n)
    expect(() => status()).toThrow(new TypeError('status: the number of arguments must be 1, not 0'))
    expect(status(3)).toBe(3)
    expect(() => status(1, 2)).toThrow(new TypeError('status: the number of arguments must be 1, not 2'))
  })

  test('numbers parameters that have no name', () => {
    const status = library.function('mixed', { parameters: ['f32', 'i32', 'f64', 'u8', 'f32'], result: 'f64' })
    expect(() => status(1, 2, 3, 256, 5)).toThrow(/^mixed: argument 4 must be an integer between 0 and 255, not 256$/)
  })

  test('is looked up at its first call', () => {
    const missing = library.function('no_such_function', { parameters: ['value: i32'], result: 'void' })
    expect(() => missing(1)).toThrow(SymbolNotFoundError)
    const absent = defineLibrary({
      id: 'absentSignatures',
      title: 'Absent',
      environment: 'SHOAL_TEST_ABSENT',
      linux: ['libshoaltestabsent.so'],
      hint: 'there is none',
    })
    const nothing = absent.function('nothing', { parameters: [], result: 'void' })
    expect(() => nothing()).toThrow(LibraryNotFoundError)
  })

  test('works in offThread', async () => {
    const memory = NativeMemory.allocate(16)
    const setPoint = library.function('set_point', {
      parameters: ['target: ptr', 'x: i64', 'y: i64'],
      result: 'status',
    })
    const mixed = library.function('mixed', { parameters: ['f32', 'i32', 'f64', 'u8', 'f32'], result: 'f64' })
    const status = library.function('status', { parameters: ['value: i32'], result: 'status' })
    expect(
      await offThread({ results: 'value' }, () => {
        expect(setPoint(memory, 5, 6)).toBeUndefined()
        mixed(1, 2, 3, 4, 5)
      }),
    ).toEqual([0, 15])
    expect([...memory.u64]).toEqual([5n, 6n])
    expect(await offThread({}, () => status(7))).toEqual([7])
    await expect(offThread({}, () => setPoint(new BigInt64Array(2), 1, 2))).rejects.toThrow(
      /^set_point: target must be NativeMemory/,
    )
  })
})

describe('a signature of a C function', () => {
  test.each<[string, unknown, RegExp]>([
    [
      'a parameter of no kind',
      { parameters: ['x: int'], result: 'i32' },
      /parameters\[0\] must be .*i32.*, not 'x: int'|not 'int'/,
    ],
    ['a parameter that is no text', { parameters: [4], result: 'i32' }, /parameters\[0\] must be/],
    ['no list', { parameters: 'i32', result: 'i32' }, /parameters must be an array/],
    ['a result of no kind', { parameters: [], result: 'int' }, /result must be .*'int'/],
    ['no result', { parameters: [] }, /result must be/],
    ['an unknown key', { parameters: [], result: 'i32', returns: 'i32' }, /returns/],
    ['a structure of no bytes', { parameters: [{ bytes: 0 }], result: 'i32' }, /parameters\[0\]\.bytes must be/],
    ['a large structure', { parameters: [], result: { bytes: 129 } }, /result\.bytes must be/],
    ['nine floats', { parameters: Array(9).fill('f32'), result: 'i32' }, /parameters must be at most 8 floats, not 9/],
    ['47 words', { parameters: Array(47).fill('ptr'), result: 'i32' }, /parameters must be at most 46 words/],
    ['a fraction', { parameters: [], result: 'i32', since: 1.5 }, /since must be/],
  ])('is refused with %s', (_, signature, message) => {
    const bind = (): unknown => library.function('nothing', signature as never)
    expect(bind).toThrow(/^NativeLibrary\.function: /)
    expect(bind).toThrow(message)
  })

  test('determines the types of arguments and result', () => {
    const fill = library.function('fill', { parameters: ['target: ptr', 'usize', { bytes: 8 }], result: 'cstring' })
    expectTypeOf(fill).returns.toEqualTypeOf<string | null>()
    expectTypeOf(fill).parameter(1).toEqualTypeOf<number | bigint>()
    expectTypeOf(fill).parameter(2).toEqualTypeOf<ArrayBufferView | NativeMemory>()
    const version = library.function('version', { parameters: [], result: 'usize' })
    expectTypeOf(version).toEqualTypeOf<() => bigint>()
    // @ts-expect-error this kind does not exist
    expect(() => library.function('f', { parameters: ['x: int'], result: 'void' })).toThrow(TypeError)
    // @ts-expect-error an argument of another type
    expect(() => library.function('nothing', { parameters: ['x: i32'], result: 'void' })('1')).toThrow(TypeError)
    expectTypeOf<Parameter>().not.toBeAny()
    expectTypeOf<ResultTypes['ptr']>().toEqualTypeOf<bigint>()
  })
})
