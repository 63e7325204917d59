/** A reproducible random number generator (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  u32(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let value = this.#state
    value = Math.imul(value ^ (value >>> 15), value | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return (value ^ (value >>> 14)) >>> 0
  }

  u64(): bigint {
    return (BigInt(this.u32()) << 32n) | BigInt(this.u32())
  }

  below(count: number): number {
    return this.u32() % count
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T
  }

  bytes(count: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length: count }, () => this.u32() & 0xff)
  }
}
