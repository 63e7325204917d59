/**
 * Argument checks of generated functions.
 *
 * Each writes one slot of the block, or throws a TypeError or RangeError that names the function and the parameter
 * before native code runs. None of them runs code of the caller, so no other call can change the block between two
 * slots. A bigint is checked by reading it back: the slot keeps its value modulo 2⁶⁴, and V8 compares the two faster
 * than it compares a bigint with its bounds.
 */
import { isView, outOfRange, wrongType } from '@shoal/types'
import {
  dropCallContext,
  floats32,
  floats64,
  maximumArguments,
  signedSlots32,
  signedSlots64,
  slots32,
  slots64,
} from '../addon/block.js'
import { addon } from '../addon/load.js'
import { NativeMemory } from '../memory/nativeMemory.js'
import { recording } from './recording.js'

/** An address, or memory whose address is passed. `null` is NULL; `undefined` is refused. */
export type PointerArgument = bigint | ArrayBufferView | ArrayBufferLike | NativeMemory | null

/** A `size_t` or another unsigned 64-bit integer. A number must be a safe integer. */
export type SizeArgument = number | bigint

/** A signed 64-bit integer. */
export type SignedArgument = number | bigint

const twoTo32 = 0x1_0000_0000

// Views whose addresses are in the block, because the collector could free a temporary array before the call.
const kept: unknown[] = new Array(maximumArguments).fill(undefined)

function refuseType(api: string, parameter: string, expected: string, value: unknown): never {
  dropCallContext()
  throw wrongType(api, parameter, expected, value)
}

function refuseRange(api: string, parameter: string, expected: string, value: unknown): never {
  dropCallContext()
  throw outOfRange(api, parameter, expected, value)
}

// The functions below contain only the common case: V8 limits how many bytes it inlines into a caller, and a launch has
// eleven arguments.

/** Writes an opaque handle or device address: a bigint in 0 … 2⁶⁴−1, or `null`. */
export function putHandle(slot: number, value: bigint | null, api: string, parameter: string): void {
  if (typeof value === 'bigint') {
    slots64[slot] = value
    if (slots64[slot] === value) return
  } else if (value === null) {
    slots64[slot] = 0n
    return
  }
  refuseWord(value, 'a bigint handle or null', api, parameter)
}

/**
 * Writes a pointer: an address, `null`, or the address of memory.
 *
 * @param least bytes that C accesses at least; smaller memory is refused. The size behind an address is unknown.
 */
export function putPointer(slot: number, value: PointerArgument, api: string, parameter: string, least = 0): void {
  if (typeof value === 'bigint') {
    slots64[slot] = value
    if (slots64[slot] === value) return
  } else if (value === null) {
    slots64[slot] = 0n
    return
  }
  putMemory(slot, value, api, parameter, least)
}

/**
 * Writes a pointer to an array whose length another argument gives; the length may be 0.
 *
 * @param element bytes of one element; memory that is not empty must hold at least one.
 */
export function putArray(slot: number, value: PointerArgument, api: string, parameter: string, element: number): void {
  if (typeof value === 'bigint') {
    slots64[slot] = value
    if (slots64[slot] === value) return
  } else if (value === null) {
    slots64[slot] = 0n
    return
  }
  putMemory(slot, value, api, parameter, element, true)
}

function refuseWord(value: unknown, expected: string, api: string, parameter: string): never {
  if (typeof value === 'bigint') refuseRange(api, parameter, 'between 0 and 2^64 - 1', value)
  refuseType(api, parameter, expected, value)
}

function putMemory(
  slot: number,
  value: unknown,
  api: string,
  parameter: string,
  least: number,
  mayBeEmpty = false,
): void {
  if (value instanceof NativeMemory) putNativeMemory(slot, value)
  else putJavaScriptMemory(slot, value, api, parameter)
  if (least === 0) return
  const byteLength = value instanceof NativeMemory ? value.byteLength : byteLengthOf(value)
  if (byteLength >= least || (mayBeEmpty && byteLength === 0)) {
    // Bytes can hold any type, but larger elements than C's are of a wrong type.
    if (least === 1 || least >= 8 || value instanceof NativeMemory || elementBytesOf(value) <= least) return
    refuseType(api, parameter, `memory for elements of ${least} bytes`, value)
  }
  dropCallContext()
  const room = `memory of at least ${least} bytes${mayBeEmpty ? ', or of none' : ''}`
  throw new RangeError(`${api}: ${parameter} must be ${room}, not of ${byteLength}`)
}

function putNativeMemory(slot: number, memory: NativeMemory): void {
  if (memory.disposed) dropCallContext()
  const address = memory.address
  recording.addon?.keep(address)
  slots64[slot] = address
  kept[slot] = memory
}

function putJavaScriptMemory(slot: number, value: unknown, api: string, parameter: string): void {
  if (!isView(value) && !isBuffer(value)) {
    refuseWord(
      value,
      'an address (bigint), memory (a typed array, DataView, ArrayBuffer or NativeMemory) or null',
      api,
      parameter,
    )
  }
  if (recording.addon !== undefined) {
    refuseType(
      api,
      parameter,
      'NativeMemory or an address in a call for another thread, where arrays of the JavaScript heap do not live long enough',
      value,
    )
  }
  // Node-API returns the address of a shared buffer only through a view.
  const memory = value instanceof SharedArrayBuffer ? new Uint8Array(value) : value
  kept[slot] = memory
  addon().putAddress(memory, slot)
}

// The engine's getters, because `value.byteLength` could run code of the caller.
const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object
const getterOf = (prototype: object, name: string | symbol): (() => unknown) =>
  Object.getOwnPropertyDescriptor(prototype, name)?.get as () => unknown
const typedArrayName = getterOf(typedArray, Symbol.toStringTag)
const typedArrayBytes = getterOf(typedArray, 'byteLength')
const dataViewBytes = getterOf(DataView.prototype, 'byteLength')
const bufferBytes = getterOf(ArrayBuffer.prototype, 'byteLength')
const sharedBufferBytes = getterOf(SharedArrayBuffer.prototype, 'byteLength')

const wideElements: { readonly [name: string]: number } = {
  Int16Array: 2,
  Uint16Array: 2,
  Float16Array: 2,
  Int32Array: 4,
  Uint32Array: 4,
  Float32Array: 4,
  Float64Array: 8,
  BigInt64Array: 8,
  BigUint64Array: 8,
}

/** Returns the element size of a typed array in bytes; 1 for other memory. */
function elementBytesOf(memory: unknown): number {
  const name = typedArrayName.call(memory) as string | undefined
  return name === undefined ? 1 : (wideElements[name] ?? 1)
}

/** Returns the size of JavaScript memory in bytes; 0 if it was detached. */
function byteLengthOf(memory: unknown): number {
  if (typedArrayName.call(memory) !== undefined) return typedArrayBytes.call(memory) as number
  const getter = isView(memory) ? dataViewBytes : memory instanceof SharedArrayBuffer ? sharedBufferBytes : bufferBytes
  try {
    return getter.call(memory) as number
  } catch {
    return 0 // a DataView whose buffer was detached
  }
}

function isBuffer(value: unknown): value is ArrayBufferLike {
  return value instanceof ArrayBuffer || value instanceof SharedArrayBuffer
}

/**
 * Writes a string as NUL-terminated UTF-8, or a pointer to one.
 *
 * Refuses strings that contain NUL, because C would cut them there.
 */
export function putCString(slot: number, value: string | PointerArgument, api: string, parameter: string): void {
  if (typeof value !== 'string') {
    putPointer(slot, value, api, parameter)
    return
  }
  if (value.includes('\0')) refuseType(api, parameter, 'text without a NUL character', value)
  const bytes = Buffer.from(`${value}\0`, 'utf8')
  if (recording.addon === undefined) {
    putMemory(slot, bytes, api, parameter, 0)
    return
  }
  const memory = NativeMemory.allocate(bytes.length)
  memory.bytes.set(bytes)
  putMemory(slot, memory, api, parameter, 0)
}

/** Writes a `size_t` or `uint64_t`: a non-negative safe integer or a bigint in 0 … 2⁶⁴−1. */
export function putSize(slot: number, value: SizeArgument, api: string, parameter: string): void {
  if (typeof value === 'number' && (value | 0) === value && value >= 0) {
    slots32[2 * slot] = value
    slots32[2 * slot + 1] = 0
  } else {
    putWideSize(slot, value, api, parameter)
  }
}

function putWideSize(slot: number, value: SizeArgument, api: string, parameter: string): void {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) || value < 0)
      refuseNumber(value, 'a non-negative safe integer or a bigint', api, parameter)
    slots32[2 * slot] = value
    slots32[2 * slot + 1] = value / twoTo32
  } else {
    if (typeof value === 'bigint') slots64[slot] = value
    if (slots64[slot] !== value) refuseWord(value, 'a number or a bigint', api, parameter)
  }
}

/** Writes an `int64_t` or `ptrdiff_t`: a safe integer or a bigint in −2⁶³ … 2⁶³−1. */
export function putI64(slot: number, value: SignedArgument, api: string, parameter: string): void {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) refuseNumber(value, 'a safe integer or a bigint', api, parameter)
    slots32[2 * slot] = value
    slots32[2 * slot + 1] = Math.floor(value / twoTo32)
  } else if (typeof value === 'bigint') {
    signedSlots64[slot] = value
    if (signedSlots64[slot] !== value) refuseRange(api, parameter, 'between -2^63 and 2^63 - 1', value)
  } else {
    refuseType(api, parameter, 'a number or a bigint', value)
  }
}

function refuseNumber(value: unknown, expected: string, api: string, parameter: string): never {
  if (typeof value === 'number') refuseRange(api, parameter, expected, value)
  refuseType(api, parameter, expected, value)
}

/** Writes an `unsigned int`. */
export function putU32(slot: number, value: number, api: string, parameter: string): void {
  // A signed comparison, which V8 makes on integers; `>>>` would compare floating-point numbers.
  if (typeof value === 'number' && (value | 0) === value && value >= 0) slots32[2 * slot] = value
  else putUpperU32(slot, value, api, parameter)
}

function putUpperU32(slot: number, value: number, api: string, parameter: string): void {
  if (typeof value === 'number' && value >>> 0 === value) slots32[2 * slot] = value
  else refuseNumber(value, 'an integer between 0 and 2^32 - 1', api, parameter)
}

/** Writes an `int` or an enumeration. */
export function putI32(slot: number, value: number, api: string, parameter: string): void {
  if (typeof value === 'number' && (value | 0) === value) signedSlots32[2 * slot] = value
  else refuseNumber(value, 'an integer between -2^31 and 2^31 - 1', api, parameter)
}

/** Writes an `unsigned short`. */
export function putU16(slot: number, value: number, api: string, parameter: string): void {
  if (typeof value === 'number' && (value & 0xffff) === value) slots32[2 * slot] = value
  else refuseNumber(value, 'an integer between 0 and 65535', api, parameter)
}

/** Writes a `short`. */
export function putI16(slot: number, value: number, api: string, parameter: string): void {
  if (typeof value === 'number' && (value << 16) >> 16 === value) signedSlots32[2 * slot] = value
  else refuseNumber(value, 'an integer between -32768 and 32767', api, parameter)
}

/** Writes an `unsigned char`. */
export function putU8(slot: number, value: number, api: string, parameter: string): void {
  if (typeof value === 'number' && (value & 0xff) === value) slots32[2 * slot] = value
  else refuseNumber(value, 'an integer between 0 and 255', api, parameter)
}

/** Writes a `signed char`. */
export function putI8(slot: number, value: number, api: string, parameter: string): void {
  if (typeof value === 'number' && (value << 24) >> 24 === value) signedSlots32[2 * slot] = value
  else refuseNumber(value, 'an integer between -128 and 127', api, parameter)
}

/** Writes a C++ `bool`. */
export function putBool(slot: number, value: boolean, api: string, parameter: string): void {
  if (typeof value !== 'boolean') refuseType(api, parameter, 'a boolean', value)
  slots32[2 * slot] = value ? 1 : 0
}

/**
 * Writes the `float` nearest to a number.
 *
 * The slot comes from {@link CallLayout}, or is {@link floatSlot} or a later one.
 */
export function putF32(slot: number, value: number, api: string, parameter: string): void {
  if (typeof value === 'number') floats32[2 * slot] = value
  else refuseType(api, parameter, 'a number', value)
}

/** Writes a `double`. */
export function putF64(slot: number, value: number, api: string, parameter: string): void {
  if (typeof value === 'number') floats64[slot] = value
  else refuseType(api, parameter, 'a number', value)
}

/** Writes a structure by value to `words` consecutive slots. */
export function putStruct(
  slot: number,
  value: ArrayBufferView | NativeMemory,
  byteLength: number,
  words: number,
  api: string,
  parameter: string,
): void {
  const view = value instanceof NativeMemory ? value.bytes : value
  if (!isView(view))
    refuseType(api, parameter, `a structure of ${byteLength} bytes (a typed array, DataView or NativeMemory)`, value)
  if (view.byteLength < byteLength) {
    dropCallContext()
    throw new RangeError(
      `${api}: ${parameter} must be a structure of ${byteLength} bytes, not of ${view.byteLength} bytes`,
    )
  }
  const target = new Uint8Array(slots64.buffer, slot * 8, words * 8)
  target.fill(0)
  target.set(new Uint8Array(view.buffer, view.byteOffset, byteLength))
}
