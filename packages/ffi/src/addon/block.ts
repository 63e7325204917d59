import type { OwnedArrayOf } from '@shoal/types'

/**
 * The argument block of this JavaScript thread: 8-byte words that the addon's trampolines read.
 *
 * Writing arguments here and making one call without arguments is much cheaper than passing them through Node-API.
 */

/** Input: context of the next call, or the context to enter. Output of `enterContext`: the previous context. */
export const contextSlot = 46
/** The last call's 64-bit result, or the bits of a floating-point result. */
export const resultSlot = 47
/** Most integer words of a call. A structure by value takes many: 35 for `cudaEglFrame`. */
export const maximumArguments = 46
/** First floating-point register. A double takes the word, a float its low half. */
export const floatSlot = 48
/** Number of floating-point registers for arguments. */
export const maximumFloats = 8
/** Position of a returned structure. */
const structureSlot = floatSlot + maximumFloats
/** The largest structure that a call can return, in bytes. */
export const maximumStructure = 128
const wordCount = structureSlot + maximumStructure / 8

export const block = new ArrayBuffer(wordCount * 8)
/** The words of the block as unsigned 64-bit integers. */
export const slots64: OwnedArrayOf<'u64'> = new BigUint64Array(block)
/** Word `2 * i` is the low half of slot `i`, word `2 * i + 1` the high half. */
export const slots32: OwnedArrayOf<'u32'> = new Uint32Array(block)
/** Like {@link slots32}, signed. */
export const signedSlots32: OwnedArrayOf<'i32'> = new Int32Array(block)
/** Like {@link slots64}, signed. */
export const signedSlots64: OwnedArrayOf<'i64'> = new BigInt64Array(block)
export const floats32: OwnedArrayOf<'f32'> = new Float32Array(block)
export const floats64: OwnedArrayOf<'f64'> = new Float64Array(block)

/** A 64-bit number in two signed halves, which avoids a bigint and its heap allocation. */
export interface U64Halves {
  readonly low: number
  readonly high: number
}

/** Returns the first `byteLength` bytes of the structure that the last call returned. */
export function returnedStructure(byteLength: number): OwnedArrayOf<'u8'> {
  return new Uint8Array(block, structureSlot * 8, byteLength)
}

/** Clears the context of the next call, when that call will not be made. */
export function dropCallContext(): void {
  slots64[contextSlot] = 0n
}
