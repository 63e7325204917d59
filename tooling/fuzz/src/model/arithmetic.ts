import { arrays, type Expected, type ModelType } from './memory.js'

/** Types whose reductions the model can predict for any bits in memory, because they neither round nor have a NaN. */
export const integers: readonly ModelType[] = ['i8', 'u8', 'i32', 'u32', 'i64']

type Combine = (a: bigint, b: bigint) => bigint
const combinations: Readonly<Record<string, Combine>> = {
  sum: (a, b) => a + b,
  prod: (a, b) => a * b,
  min: (a, b) => [a, b][Number(b < a)] as bigint,
  max: (a, b) => [a, b][Number(a < b)] as bigint,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
}

/** Returns the result of a reduction. An element of the result is defined if all its operands are. */
export function reduced(dtype: ModelType, op: string, parts: readonly Expected[]): Expected {
  const combine = combinations[op] as Combine
  const first = parts[0] as Expected
  const result = { bytes: first.bytes.slice(), defined: first.defined.slice() }
  const total = elementsOf(dtype, result.bytes)
  for (const part of parts.slice(1)) {
    const elements = elementsOf(dtype, part.bytes)
    for (let index = 0; index < total.length; index += 1) {
      const value = combine(BigInt(total[index] as number), BigInt(elements[index] as number))
      // A JavaScript number cannot hold the product of two large 32-bit integers. For narrow types, only the low bits
      // matter.
      total[index] = (dtype === 'i64' ? value : Number(BigInt.asIntN(32, value))) as never
    }
    for (let index = 0; index < result.defined.length; index += 1)
      result.defined[index]! &= part.defined[index] as number
  }
  spread(result.defined, arrays[dtype].BYTES_PER_ELEMENT)
  return result
}

/** Returns the bytes as elements. `bytes` must be aligned for the element type. */
export function elementsOf(dtype: ModelType, bytes: Uint8Array): InstanceType<(typeof arrays)[ModelType]> {
  const { BYTES_PER_ELEMENT: size } = arrays[dtype]
  return new arrays[dtype](bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / size)
}

/** Marks an element as undefined if any of its bytes is undefined. */
export function spread(defined: Uint8Array, size: number): void {
  for (let start = 0; start < defined.length; start += size) {
    const all = defined.subarray(start, start + size)
    if (all.includes(0)) all.fill(0)
  }
}

export function joined(parts: readonly Expected[]): Expected {
  const length = parts.reduce((sum, { bytes }) => sum + bytes.length, 0)
  const whole = { bytes: new Uint8Array(length), defined: new Uint8Array(length) }
  let at = 0
  for (const { bytes, defined } of parts) {
    whole.bytes.set(bytes, at)
    whole.defined.set(defined, at)
    at += bytes.length
  }
  return whole
}

export function partOf({ bytes, defined }: Expected, index: number, parts: number): Expected {
  const length = bytes.length / parts
  return {
    bytes: bytes.slice(index * length, (index + 1) * length),
    defined: defined.slice(index * length, (index + 1) * length),
  }
}
