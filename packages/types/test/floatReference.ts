// A slow, exact reference for narrow floats: every value is an integer multiple of 2^-1074, stored as a bigint.
export interface ReferenceFormat {
  readonly significandBits: number
  readonly exponentBias: number
  /** Bits of the largest finite magnitude. */
  readonly largest: number
  /** Bits of overflow without saturation. */
  readonly overflow: number
  /** Bits that encode NaN. */
  readonly nan: number
  readonly totalBits: number
}

export const referenceFormats = {
  f16: { significandBits: 10, exponentBias: 15, largest: 0x7bff, overflow: 0x7c00, nan: 0x7fff, totalBits: 16 },
  bf16: { significandBits: 7, exponentBias: 127, largest: 0x7f7f, overflow: 0x7f80, nan: 0x7fff, totalBits: 16 },
  f8e4m3: { significandBits: 3, exponentBias: 7, largest: 0x7e, overflow: 0x7f, nan: 0x7f, totalBits: 8 },
  f8e5m2: { significandBits: 2, exponentBias: 15, largest: 0x7b, overflow: 0x7c, nan: 0x7e, totalBits: 8 },
} as const satisfies Record<string, ReferenceFormat>

export type ReferenceName = keyof typeof referenceFormats

/** Returns the magnitude of finite bits without their sign, in units of 2^-1074. */
export function scaledMagnitude(format: ReferenceFormat, bits: number): bigint {
  const hidden = 1 << format.significandBits
  const field = Math.floor(bits / hidden)
  const fraction = bits % hidden
  const significand = field === 0 ? fraction : fraction + hidden
  const exponent = (field === 0 ? 1 : field) - format.exponentBias - format.significandBits
  return BigInt(significand) << BigInt(exponent + 1074)
}

/** Returns the magnitude of a finite double in units of 2^-1074. */
export function scaledDouble(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, Math.abs(value))
  const bits = view.getBigUint64(0)
  const field = bits >> 52n
  const fraction = bits & ((1n << 52n) - 1n)
  return field === 0n ? fraction : (fraction | (1n << 52n)) << (field - 1n)
}

/** Returns a double from its magnitude in units of 2^-1074. Throws if it is not exact. */
export function doubleFromScaled(scaled: bigint): number {
  let significand = scaled
  let exponent = -1074
  for (const step of [512, 64, 8, 1]) {
    const zeros = (1n << BigInt(step)) - 1n
    while (significand > 0n && (significand & zeros) === 0n) {
      significand >>= BigInt(step)
      exponent += step
    }
  }
  const half = Math.trunc(exponent / 2)
  const value = Number(significand) * 2 ** half * 2 ** (exponent - half)
  if (scaledDouble(value) !== scaled) throw new Error(`${scaled} * 2^-1074 is no double`)
  return value
}

/** Returns every finite magnitude of a format by its bits, and one step above the largest. */
export function magnitudes(format: ReferenceFormat): bigint[] {
  const out: bigint[] = []
  for (let bits = 0; bits <= format.largest + 1; bits += 1) out.push(scaledMagnitude(format, bits))
  return out
}

/** Returns the bits of the value nearest to a finite or infinite double, found by search. */
export function nearestBits(
  format: ReferenceFormat,
  table: readonly bigint[],
  value: number,
  saturate: boolean,
): number {
  const sign = value < 0 || Object.is(value, -0) ? 2 ** (format.totalBits - 1) : 0
  const beyond = saturate ? format.largest : format.overflow
  if (!Number.isFinite(value)) return sign + beyond
  const target = scaledDouble(value)
  let below = 0
  let above = table.length - 1
  if (target >= (table[above] as bigint)) return sign + beyond
  while (above - below > 1) {
    const middle = (below + above) >> 1
    if ((table[middle] as bigint) <= target) below = middle
    else above = middle
  }
  const toBelow = target - (table[below] as bigint)
  const toAbove = (table[above] as bigint) - target
  let nearest = toBelow < toAbove ? below : above
  if (toBelow === toAbove) nearest = below % 2 === 0 ? below : above
  return sign + (nearest > format.largest ? beyond : nearest)
}

/** Returns the double next to `value` in the direction of `step`, for finite values except zero. */
export function neighbour(value: number, step: 1 | -1): number {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  view.setBigInt64(0, view.getBigInt64(0) + BigInt(value > 0 ? step : -step))
  return view.getFloat64(0)
}

/** Returns a small repeatable random generator (xorshift), so that a failure can be repeated. */
export function randomWords(seed: number): () => number {
  let state = seed >>> 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state
  }
}

/** Returns doubles of every exponent and of exponents near the format's own range, without NaN. */
export function randomDoubles(format: ReferenceFormat, count: number, seed: number): Float64Array {
  const next = randomWords(seed)
  const view = new DataView(new ArrayBuffer(8))
  const out = new Float64Array(count)
  const lowest = 1023 - format.exponentBias - format.significandBits - 3
  const span = 2 * format.exponentBias + format.significandBits + 8
  for (let index = 0; index < count; index += 1) {
    let top = next()
    if (index % 4 !== 0) {
      const field = Math.min(Math.max(lowest + (next() % span), 0), 0x7fe)
      top = ((top & 0x800f_ffff) | (field << 20)) >>> 0
    }
    view.setUint32(0, top)
    // Half of them have few set bits, which produces ties.
    view.setUint32(4, index % 2 === 0 ? next() : 0)
    const value = view.getFloat64(0)
    out[index] = Number.isNaN(value) ? Number.POSITIVE_INFINITY : value
  }
  return out
}
