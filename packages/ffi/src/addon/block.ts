import type { OwnedArrayOf } from '@shoal/types'

/**
 * The argument block of this JavaScript thread: words of 8 bytes that the addon's trampolines read. Writing arguments
 * here and making one call without arguments costs a fraction of passing them through Node-API one by one.
 */

/** In: the context of the next call, or the one to enter. Out of `enterContext`: the one that was current. */
export const contextSlot = 46
/** The 64-bit result of the last call that returns one, or the bits of a floating-point result. */
export const resultSlot = 47
/** The most integer words that a call can take. A structure by value takes many: `cudaEglFrame` 35 of them. */
export const maximumArguments = 46
/** The first floating-point register. A double takes the word, a float its low half. */
export const floatSlot = 48
/** Floating-point registers for arguments. */
export const maximumFloats = 8
/** Where a structure is returned. */
const structureSlot = floatSlot + maximumFloats
/** The largest structure that a call can return, in bytes. */
export const maximumStructure = 128
const wordCount = structureSlot + maximumStructure / 8

export const block = new ArrayBuffer(wordCount * 8)
/** The words of the block as unsigned integers of 64 bits. */
export const slots64: OwnedArrayOf<'u64'> = new BigUint64Array(block)
/** Word `2 * i` is the low half of slot `i`, word `2 * i + 1` the high half. */
export const slots32: OwnedArrayOf<'u32'> = new Uint32Array(block)
/** As {@link slots32}, signed. */
export const signedSlots32: OwnedArrayOf<'i32'> = new Int32Array(block)
/** As {@link slots64}, signed. */
export const signedSlots64: OwnedArrayOf<'i64'> = new BigInt64Array(block)
export const floats32: OwnedArrayOf<'f32'> = new Float32Array(block)
export const floats64: OwnedArrayOf<'f64'> = new Float64Array(block)

/** A 64-bit number in two signed halves: the block takes them without a bigint, and V8 without memory of its own. */
export interface U64Halves {
  readonly low: number
  readonly high: number
}

/** The structure that the last call returned, `byteLength` bytes of it. */
export function returnedStructure(byteLength: number): OwnedArrayOf<'u8'> {
  return new Uint8Array(block, structureSlot * 8, byteLength)
}

/** Takes back the context of the next call, when that call will not be made. */
export function dropCallContext(): void {
  slots64[contextSlot] = 0n
}
