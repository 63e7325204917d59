/**
 * The argument block of this JavaScript thread: 32 words of 8 bytes that the addon's trampolines read. Writing arguments
 * here and making one call without arguments costs a fraction of passing them through Node-API one by one.
 */

/** Words in the block. Slots 30 and 31 are not arguments. */
export const slotCount = 32
/** In: the context of the next call, or the one to enter. Out of `enterContext`: the one that was current. */
export const contextSlot = 30
/** The 64-bit result of the last call that returns one. */
export const resultSlot = 31
/** The most arguments a call can have. */
export const maximumArguments = 30

export const block = new ArrayBuffer(slotCount * 8)
export const slots64 = new BigUint64Array(block)
/** Word `2 * i` is the low half of slot `i`, word `2 * i + 1` the high half. */
export const slots32 = new Uint32Array(block)
export const signedSlots32 = new Int32Array(block)
export const signedSlots64 = new BigInt64Array(block)

/** Takes back the context of the next call, when that call will not be made. */
export function dropCallContext(): void {
  slots64[contextSlot] = 0n
}
