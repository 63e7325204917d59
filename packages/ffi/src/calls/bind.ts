import { type OwnedArrayOf, requireInteger } from '@shoal/types'
import {
  floats32,
  floats64,
  maximumArguments,
  maximumFloats,
  maximumStructure,
  resultSlot,
  returnedStructure,
  signedSlots64,
  slots64,
} from '../addon/block.js'
import { addon } from '../addon/load.js'
import type { CallLayout } from './lowering.js'

/** C result that a JavaScript number holds; `void` for none. `bool` is 0 or 1. */
export type NumberResult = 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'f32' | 'f64' | 'bool' | 'void'

/** C result of 64 bits. */
export type BigResult = 'i64' | 'u64' | 'pointer'

/** Result type of a C function. */
export type ResultKind = NumberResult | BigResult

/** Calls a C function with the arguments in the block. */
export type NativeCall = () => number
/** Calls a C function whose result has 64 bits. */
export type BigNativeCall = () => bigint
/** Calls a C function that returns a structure by value. The bytes are valid until the next call. */
export type StructNativeCall = () => OwnedArrayOf<'u8'>

/** Argument layout: a number of integer or pointer words, or a layout of `lowerCall`. */
export type CallArguments = number | CallLayout

// In the order of the addon's `Result`.
const codes = {
  i32: 0,
  u32: 1,
  void: 2,
  u64: 3,
  pointer: 3,
  i64: 4,
  f32: 5,
  f64: 6,
  i8: 7,
  u8: 8,
  i16: 9,
  u16: 10,
  bool: 11,
  struct: 12,
} as const

function bindAddress(
  address: bigint,
  layout: CallArguments,
  result: keyof typeof codes,
  resultBytes: number,
  name: string,
): NativeCall {
  const slots = typeof layout === 'number' ? layout : layout.slotCount
  const floats = typeof layout === 'number' ? 0 : layout.floatCount
  requireInteger(slots, name, 'the number of argument words', 0, maximumArguments)
  requireInteger(floats, name, 'the number of floating-point registers', 0, maximumFloats)
  return addon().bind(address, slots, floats, codes[result], resultBytes, name)
}

/** Binds a function at an address that returns a number, or nothing (`undefined`). */
export function bindCall(address: bigint, layout: CallArguments, result: NumberResult, name: string): NativeCall {
  const call = bindAddress(address, layout, result, 0, name)
  if (result === 'f32') {
    return () => {
      call()
      return floats32[2 * resultSlot] as number
    }
  }
  if (result === 'f64') {
    return () => {
      call()
      return floats64[resultSlot] as number
    }
  }
  return call
}

/** Binds a function at an address whose result has 64 bits. */
export function bindBigCall(address: bigint, layout: CallArguments, result: BigResult, name: string): BigNativeCall {
  const call = bindAddress(address, layout, result, 0, name)
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

/**
 * Binds a function that returns a structure of integers and pointers by value.
 *
 * It works for structures in registers and in memory.
 * @param byteLength size of the structure, at most 128 bytes.
 */
export function bindStructCall(
  address: bigint,
  layout: CallArguments,
  byteLength: number,
  name: string,
): StructNativeCall {
  requireInteger(byteLength, name, 'byteLength of a structure by value', 1, maximumStructure)
  const call = bindAddress(address, layout, 'struct', byteLength, name)
  const bytes = returnedStructure(byteLength)
  return () => {
    call()
    return bytes
  }
}
