import { type DType, dtypeInfo } from '@shoal/types'

const bits64 = new BigUint64Array(1)

/** Returns the bits of an element, in the low bits of 64. */
export function toBits(dtype: DType, value: number | bigint): bigint {
  bits64[0] = 0n
  const { typedArray } = dtypeInfo(dtype)
  const [view] = [new typedArray(bits64.buffer, 0, 1) as { [index: number]: number | bigint }]
  view[0] = value
  return bits64[0]
}

/** Converts bits of {@link toBits} back to an element. */
export function fromBits(dtype: DType, bits: bigint): number | bigint {
  bits64[0] = bits
  const { typedArray } = dtypeInfo(dtype)
  return new typedArray(bits64.buffer, 0, 1)[0] as number | bigint
}
