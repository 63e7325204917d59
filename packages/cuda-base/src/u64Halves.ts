/** A 64-bit number in two halves, signed or not: what the argument block takes without a bigint. */
export interface U64Halves {
  readonly low: number
  readonly high: number
}

export function halvesOf(value: bigint): U64Halves {
  return { low: Number(value & 0xffff_ffffn), high: Number(value >> 32n) }
}

export function u64Of({ low, high }: U64Halves): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)
}
