import {
  decodeArray,
  decodeBF16,
  decodeF8E4M3,
  decodeF8E5M2,
  decodeF16,
  type EncodeOptions,
  encodeArray,
  encodeBF16,
  encodeF8E4M3,
  encodeF8E5M2,
  encodeF16,
} from '@shoal/types'
import { describe, expect, it } from 'vitest'
import {
  doubleFromScaled,
  magnitudes,
  nearestBits,
  neighbour,
  type ReferenceName,
  randomDoubles,
  referenceFormats,
  scaledMagnitude,
} from './floatReference.js'

interface Converter {
  readonly name: ReferenceName
  readonly encode: (value: number, options?: EncodeOptions) => number
  readonly decode: (bits: number) => number
  readonly saturates: boolean
}

const converters: readonly Converter[] = [
  { name: 'f16', encode: encodeF16, decode: decodeF16, saturates: false },
  { name: 'bf16', encode: encodeBF16, decode: decodeBF16, saturates: false },
  { name: 'f8e4m3', encode: encodeF8E4M3, decode: decodeF8E4M3, saturates: true },
  { name: 'f8e5m2', encode: encodeF8E5M2, decode: decodeF8E5M2, saturates: true },
]

// One assertion for many values, because an `expect` per value would take minutes.
function expectNoMismatch(mismatches: readonly string[]): void {
  expect(mismatches.slice(0, 5)).toEqual([])
}

describe.each(converters)('$name', ({ name, encode, decode, saturates }) => {
  const format = referenceFormats[name]
  const signBit = 2 ** (format.totalBits - 1)
  const patterns = 2 ** format.totalBits

  it('decodes every bit pattern to its value', () => {
    const mismatches: string[] = []
    for (let bits = 0; bits < patterns; bits += 1) {
      const magnitude = bits % signBit
      const sign = bits >= signBit ? -1 : 1
      let wanted: number
      if (magnitude <= format.largest) wanted = sign * doubleFromScaled(scaledMagnitude(format, magnitude))
      else if (magnitude === format.overflow && name !== 'f8e4m3') wanted = sign * Number.POSITIVE_INFINITY
      else wanted = Number.NaN
      if (!Object.is(decode(bits), wanted)) mismatches.push(`0x${bits.toString(16)}: ${decode(bits)}, not ${wanted}`)
    }
    expectNoMismatch(mismatches)
  })

  it('encodes the value of every bit pattern back to the pattern', () => {
    const mismatches: string[] = []
    for (let bits = 0; bits < patterns; bits += 1) {
      const value = decode(bits)
      const back = encode(value, { saturate: false })
      const same = Number.isNaN(value) ? back === format.nan : back === bits
      if (!same) mismatches.push(`0x${bits.toString(16)}: came back as 0x${back.toString(16)}`)
    }
    expectNoMismatch(mismatches)
  })

  it('rounds midpoints to the even neighbour, and other values to the nearest', () => {
    const table = magnitudes(format)
    const mismatches: string[] = []
    for (let below = 0; below < format.largest; below += 1) {
      const above = below + 1
      const middle = doubleFromScaled(((table[below] as bigint) + (table[above] as bigint)) >> 1n)
      const even = below % 2 === 0 ? below : above
      for (const sign of [1, -1]) {
        const signed = sign < 0 ? signBit : 0
        for (const [value, wanted] of [
          [middle, even],
          [neighbour(middle, -1), below],
          [neighbour(middle, 1), above],
        ] as const) {
          const got = encode(sign * value)
          if (got !== signed + wanted) mismatches.push(`${sign * value}: 0x${got.toString(16)}`)
        }
      }
    }
    expectNoMismatch(mismatches)
  })

  it.each([true, false])('rounds around the largest value (saturate: %s)', (saturate) => {
    const table = magnitudes(format)
    const last = table[format.largest] as bigint
    const limit = doubleFromScaled((last + (table[format.largest + 1] as bigint)) >> 1n)
    const beyond = saturate ? format.largest : format.overflow
    const tie = format.largest % 2 === 0 ? format.largest : beyond
    for (const [value, wanted] of [
      [doubleFromScaled(last), format.largest],
      [neighbour(doubleFromScaled(last), 1), format.largest],
      [neighbour(limit, -1), format.largest],
      [limit, tie],
      [neighbour(limit, 1), beyond],
      [limit * 2, beyond],
      [Number.MAX_VALUE, beyond],
      [Number.POSITIVE_INFINITY, beyond],
    ] as const) {
      expect(encode(value, { saturate }), String(value)).toBe(wanted)
      expect(encode(-value, { saturate }), String(-value)).toBe(wanted + signBit)
    }
  })

  it('saturates by default if CUDA does for the format', () => {
    expect(encode(1e300)).toBe(saturates ? format.largest : format.overflow)
    expect(encode(Number.NEGATIVE_INFINITY)).toBe(signBit + (saturates ? format.largest : format.overflow))
  })

  it('keeps the sign of zero and of values that round to it', () => {
    const smallest = doubleFromScaled(scaledMagnitude(format, 1))
    for (const value of [0, Number.MIN_VALUE, 2 ** -1022, smallest / 4, smallest / 2, neighbour(smallest / 2, -1)]) {
      expect(encode(value), String(value)).toBe(0)
      expect(encode(-value), String(-value)).toBe(signBit)
    }
    expect(encode(neighbour(smallest / 2, 1))).toBe(1)
    expect(Object.is(decode(signBit), -0)).toBe(true)
  })

  it('encodes NaN as NaN whatever its payload and the saturate option', () => {
    const payload = new DataView(new ArrayBuffer(8))
    payload.setBigUint64(0, 0xfff0_0000_0000_0001n)
    for (const value of [Number.NaN, payload.getFloat64(0)]) {
      for (const saturate of [true, false]) expect(decode(encode(value, { saturate }))).toBeNaN()
    }
    expect(encode(Number.NaN)).toBe(format.nan)
  })

  it('agrees with an exact search on random doubles', () => {
    const table = magnitudes(format)
    const mismatches: string[] = []
    for (const value of randomDoubles(format, 60_000, 20_260)) {
      for (const saturate of [true, false]) {
        const got = encode(value, { saturate })
        const wanted = nearestBits(format, table, value, saturate)
        if (got !== wanted) mismatches.push(`${value}: 0x${got.toString(16)}, not 0x${wanted.toString(16)}`)
      }
    }
    expectNoMismatch(mismatches)
  })

  it('converts arrays exactly like single values', () => {
    const values = randomDoubles(format, 5_000, 7)
    values[17] = Number.NaN
    for (const options of [undefined, { saturate: true }, { saturate: false }]) {
      const bits = encodeArray(name, values, options)
      expect(Array.from(bits)).toEqual(Array.from(values, (value) => encode(value, options)))
      expect(Array.from(decodeArray(name, bits))).toEqual(Array.from(bits, decode))
    }
  })

  it('refuses other values than numbers and bit patterns', () => {
    expect(() => encode('1' as unknown as number)).toThrow(TypeError)
    expect(() => encode(1n as unknown as number)).toThrow(TypeError)
    expect(() => encode(undefined as unknown as number)).toThrow(TypeError)
    for (const bits of [-1, patterns]) expect(() => decode(bits), String(bits)).toThrow(RangeError)
    for (const bits of [0.5, Number.NaN]) expect(() => decode(bits), String(bits)).toThrow(TypeError)
  })
})

describe('double rounding', () => {
  // Rounding to f32 first would drop the last bit, leave a tie and round to the even neighbor below.
  it.each([
    ['f16', encodeF16, 1 + 2 ** -11 + 2 ** -40, 0x3c01],
    ['bf16', encodeBF16, 1 + 2 ** -8 + 2 ** -40, 0x3f81],
    ['f8e4m3', encodeF8E4M3, 1 + 2 ** -4 + 2 ** -40, 0x39],
    ['f8e5m2', encodeF8E5M2, 1 + 2 ** -3 + 2 ** -40, 0x3d],
  ] as const)('does not occur in %s', (_name, encode, value, bits) => {
    expect(encode(value)).toBe(bits)
    expect(encode(Math.fround(value))).toBe(bits - 1)
  })
})

describe('known values of converters', () => {
  it.each([
    [encodeF16, 1, 0x3c00],
    [encodeF16, -2, 0xc000],
    [encodeF16, 65504, 0x7bff],
    [encodeF16, 65519.999, 0x7bff],
    [encodeF16, 65520, 0x7c00],
    [encodeF16, 2 ** -24, 0x0001],
    [encodeF16, 1 / 3, 0x3555],
    [encodeBF16, 1, 0x3f80],
    [encodeBF16, Math.PI, 0x4049],
    [encodeBF16, 3.3895313892515355e38, 0x7f7f],
    [encodeF8E4M3, 1, 0x38],
    [encodeF8E4M3, 448, 0x7e],
    [encodeF8E4M3, 2 ** -9, 0x01],
    [encodeF8E5M2, 1, 0x3c],
    [encodeF8E5M2, 57344, 0x7b],
    [encodeF8E5M2, 2 ** -16, 0x01],
  ] as const)('%o of %d is %d', (encode, value, bits) => {
    expect(encode(value)).toBe(bits)
  })
})
