/** A 64-bit number in two halves: what the argument block takes without a bigint. */
export interface Words {
  readonly low: number
  readonly high: number
}

export function wordsOf(value: bigint): Words {
  return { low: Number(value & 0xffff_ffffn), high: Number(value >> 32n) }
}

export function wordsValue({ low, high }: Words): bigint {
  return (BigInt(high) << 32n) | BigInt(low)
}
