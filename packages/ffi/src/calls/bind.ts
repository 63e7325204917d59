import { addon } from '../addon/load.js'
import { maximumArguments, resultSlot, signedSlots64, slots64 } from './block.js'

/** What a C function returns. */
export type ResultKind = 'i32' | 'u32' | 'i64' | 'u64' | 'pointer' | 'f32' | 'f64' | 'void'

/** Calls a C function with the arguments in the block. */
export type NativeCall = () => number
/** The same for a function whose result has 64 bits. */
export type BigNativeCall = () => bigint

// The order of the addon's Result.
const codes = { i32: 0, u32: 1, void: 2, i64: 3, u64: 3, pointer: 3, f32: 4, f64: 5 } as const

function bindAddress(address: bigint, slots: number, result: ResultKind, name: string): NativeCall {
  if (!Number.isInteger(slots) || slots < 0 || slots > maximumArguments) {
    throw new RangeError(`${name}: ${slots} argument words do not fit the block of ${maximumArguments}`)
  }
  return addon().bind(address, slots, codes[result], name)
}

/** Binds a function at an address whose result is a number (or nothing: then the call returns `undefined`). */
export function bindCall(
  address: bigint,
  slots: number,
  result: 'i32' | 'u32' | 'f32' | 'f64' | 'void',
  name: string,
): NativeCall {
  return bindAddress(address, slots, result, name)
}

/** Binds a function at an address whose result has 64 bits. */
export function bindBigCall(
  address: bigint,
  slots: number,
  result: 'i64' | 'u64' | 'pointer',
  name: string,
): BigNativeCall {
  const call = bindAddress(address, slots, result, name)
  if (result === 'i64') {
    return () => {
      call()
      return signedSlots64[resultSlot] as bigint
    }
  }
  return () => {
    call()
    return slots64[resultSlot] as bigint
  }
}
