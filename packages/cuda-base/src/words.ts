/** A 64-bit number in two halves, signed or not: what the argument block takes without a bigint. */
export interface Words {
  readonly low: number
  readonly high: number
}

export function wordsOf(value: bigint): Words {
  return { low: Number(value & 0xffff_ffffn), high: Number(value >> 32n) }
}

export function wordsValue({ low, high }: Words): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)
}
