/** Random numbers that a seed repeats, and inputs for kernels, with the edge cases of their type. */

export type Scalar = 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64'
export type Value = number | bigint

export const arrays = {
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f32: Float32Array,
  f64: Float64Array,
} as const
export interface ArrayOf {
  i8: Int8Array
  u8: Uint8Array
  i16: Int16Array
  u16: Uint16Array
  i32: Int32Array
  u32: Uint32Array
  i64: BigInt64Array
  u64: BigUint64Array
  f32: Float32Array
  f64: Float64Array
}
export type Numbers = ArrayOf[Scalar]

const edges: Readonly<Record<Scalar, readonly Value[]>> = {
  i8: [0, 1, -1, 127, -128],
  u8: [0, 1, 127, 128, 255],
  i16: [0, 1, -1, 32767, -32768, 255],
  u16: [0, 1, 32767, 32768, 65535, 0x3c00, 0x7c00, 0xfc00, 0x7e00, 0x7bff, 0x8001, 0x0400, 0x83ff],
  i32: [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), 31, 32, 0xffff, -0x10000, 2 ** 24 + 1],
  u32: [0, 1, 2 ** 32 - 1, 2 ** 31, 2 ** 31 - 1, 31, 32, 33, 0xffff, 0x10000],
  i64: [0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 32n, 2n ** 53n + 1n, -(2n ** 31n)],
  u64: [0n, 1n, 2n ** 64n - 1n, 2n ** 63n, 2n ** 32n, 2n ** 32n - 1n, 2n ** 53n + 1n],
  f32: [
    0,
    -0,
    1,
    -1,
    0.5,
    1.5,
    2.5,
    -2.5,
    Infinity,
    -Infinity,
    NaN,
    2 ** -149,
    -(2 ** -126),
    3.4028234663852886e38,
  ].concat([2 ** 31, 2 ** 23 + 1, 65504, 65520, -(2 ** 63), 0.1]),
  f64: [
    0,
    -0,
    1,
    -1,
    0.5,
    1.5,
    -2.5,
    Infinity,
    -Infinity,
    NaN,
    2 ** -1074,
    Number.MAX_VALUE,
    2 ** -1022,
    2 ** 31,
  ].concat([2 ** 53 + 2, 1 + 2 ** -24, 1 + 2 ** -25, 2 ** -149 * 1.5, 3.4028235677973366e38, 0.1]),
}

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** Returns 32 random bits. */
  bits(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0
    let z = this.#state
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b)
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35)
    return (z ^ (z >>> 16)) >>> 0
  }

  /** Returns an integer from `low` to `high`. */
  integer(low: number, high: number): number {
    return low + Math.floor((this.bits() / 2 ** 32) * (high - low + 1))
  }

  /** Returns a number in [low, high). */
  real(low: number, high: number): number {
    return low + ((this.bits() + this.bits() / 2 ** 32) / 2 ** 32) * (high - low)
  }

  pick<T>(list: readonly T[]): T {
    return list[this.integer(0, list.length - 1)] as T
  }

  /** Returns any value of a type, with edge cases and all magnitudes. */
  any(type: Scalar): Value {
    if (this.integer(0, 3) === 0) return this.pick(edges[type])
    const out = new arrays[type](1)
    const words = new Uint32Array([this.bits(), this.bits()])
    new Uint8Array(out.buffer).set(new Uint8Array(words.buffer, 0, out.byteLength))
    const value = out[0] as Value
    if (typeof value === 'bigint') return value >> BigInt(this.integer(0, 1) * this.integer(0, 60))
    // Random bits give all exponents, but most sums and products need numbers of similar size.
    if (type === 'f32' || type === 'f64') {
      const real = this.integer(0, 2) === 0 ? value : this.real(-100, 100)
      return type === 'f32' ? Math.fround(real) : real
    }
    return this.integer(0, 1) === 0 ? value : value >> this.integer(0, 24)
  }
}
