import type { U64Halves } from '@shoal/ffi/calls'

export type { U64Halves } from '@shoal/ffi/calls'

export function halvesOf(value: bigint): U64Halves {
  return { low: Number(BigInt.asIntN(32, value)), high: Number(BigInt.asIntN(32, value >> 32n)) }
}

export function u64Of({ low, high }: U64Halves): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)
}
