/**
 * A 64-bit number in two signed halves: what the argument block takes without a bigint, and V8 without memory of its
 * own.
 */
export interface U64Halves {
  readonly low: number
  readonly high: number
}

export function halvesOf(value: bigint): U64Halves {
  return { low: Number(BigInt.asIntN(32, value)), high: Number(BigInt.asIntN(32, value >> 32n)) }
}

export function u64Of({ low, high }: U64Halves): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)
}
