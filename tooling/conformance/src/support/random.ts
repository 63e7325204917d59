import { type DType, dtypeInfo, type TypedArrayOf } from '@shoal/types'

/** Repeatable random numbers (xorshift with 128 bits of state). */
export class Random {
  readonly seed: number
  readonly #state = new Uint32Array(4)

  constructor(seed: number) {
    this.seed = seed >>> 0
    let mixed = this.seed
    for (let index = 0; index < 4; index += 1) {
      mixed = (Math.imul(mixed, 1664525) + 1013904223) >>> 0
      this.#state[index] = mixed ^ (mixed >>> 15) ^ (0x9e3779b9 * (index + 1))
    }
    for (let round = 0; round < 16; round += 1) this.word()
  }

  /** Returns 32 random bits. */
  word(): number {
    const state = this.#state
    let top = state[3] as number
    const bottom = state[0] as number
    state[3] = state[2] as number
    state[2] = state[1] as number
    state[1] = bottom
    top ^= top << 11
    top ^= top >>> 8
    state[0] = top ^ bottom ^ (bottom >>> 19)
    return state[0] as number
  }

  /** Returns a whole number from `least` to `greatest`, both included. */
  integer(least: number, greatest: number): number {
    return least + Math.floor((this.word() / 2 ** 32) * (greatest - least + 1))
  }

  /** Returns a number in [-1, 1). */
  signed(): number {
    return this.word() / 2 ** 31 - 1
  }

  /** Returns random bytes. */
  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length)
    const words = new Uint32Array(bytes.buffer, 0, length >> 2)
    for (let index = 0; index < words.length; index += 1) words[index] = this.word()
    for (let index = words.length * 4; index < length; index += 1) bytes[index] = this.word()
    return bytes
  }

  /** Returns an array of random bits for `length` elements of a dtype. */
  array<D extends DType>(dtype: D, length: number): TypedArrayOf<D> {
    const info = dtypeInfo(dtype)
    const bytes = this.bytes(length * info.bytes)
    return new info.typedArray(bytes.buffer, 0, length * info.arrayEntries)
  }

  /** Puts a list into random order. */
  shuffled<T>(list: T[]): T[] {
    for (let index = list.length - 1; index > 0; index -= 1) {
      const other = this.integer(0, index)
      const value = list[index] as T
      list[index] = list[other] as T
      list[other] = value
    }
    return list
  }

  /** Returns f32 numbers in [-1, 1). */
  floats(length: number): Float32Array {
    const array = new Float32Array(length)
    for (let index = 0; index < length; index += 1) array[index] = this.signed()
    return array
  }
}
