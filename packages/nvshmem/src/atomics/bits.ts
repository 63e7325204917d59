import { type DType, dtypeInfo } from '@shoal/types'

const words = new BigUint64Array(1)

/** The element in the lower bits of a word, as it lies in memory. */
export function toBits(dtype: DType, value: number | bigint): bigint {
  words[0] = 0n
  const { typedArray } = dtypeInfo(dtype)
  const [view] = [new typedArray(words.buffer, 0, 1) as { [index: number]: number | bigint }]
  view[0] = value
  return words[0]
}

/** What {@link toBits} made of an element. */
export function fromBits(dtype: DType, bits: bigint): number | bigint {
  words[0] = bits
  const { typedArray } = dtypeInfo(dtype)
  return new typedArray(words.buffer, 0, 1)[0] as number | bigint
}
