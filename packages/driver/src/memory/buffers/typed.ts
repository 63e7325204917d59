import {
  type ElementType,
  isInstance,
  isMemoryLike,
  type MemoryLike,
  type MemoryRange,
  type OptionKeys,
  outOfRange,
  requireInteger,
  requireOptions,
  toMemoryRange,
  wrongType,
} from '@shoal/types'
import { byteLengthOf } from '../../core/ranges/arrayBytes.js'
import { toSpan } from '../../core/ranges/span.js'
import { bytesOfElement, nameOfType, requireElementType } from './elementType.js'
import { requireArrayFor } from './hostArrays.js'
import { PinnedBuffer } from './pinnedBuffer.js'

/** A part of another object's memory. */
export interface ViewOptions {
  /** Start of the part in bytes. Default: 0. */
  readonly byteOffset?: number | undefined
  /** Number of elements. Default: as many as fit. */
  readonly length?: number | undefined
}

export const viewKeys: OptionKeys<ViewOptions> = { byteOffset: true, length: true }

/** Elements in memory, which a copy must match. */
export interface Elements {
  readonly dtype: ElementType
  readonly length: number
  readonly byteLength: number
}

/** Returns the address and the length of a view of another object's memory. @throws RangeError when it does not fit */
export function viewOf(
  memory: MemoryLike,
  dtype: ElementType,
  options: ViewOptions,
  api: string,
): { address: bigint; length: number } {
  const { bytes, alignment } = requireElementType(dtype, api)
  requireOptions(options, api, viewKeys)
  const { address, byteLength } = toSpan(memory, api)
  const { byteOffset = 0 } = options
  requireInteger(byteOffset, api, 'byteOffset', 0, byteLength)
  const first = address + BigInt(byteOffset)
  if (first % BigInt(alignment) !== 0n) {
    throw outOfRange(api, 'byteOffset', `a multiple of ${alignment} for ${nameOfType(dtype)}`, byteOffset)
  }
  const available = Math.floor((byteLength - byteOffset) / bytes)
  const { length = available } = options
  return { address: first, length: requireInteger(length, api, 'length', 0, available) }
}

/** Checks that a view still lies in its memory, part of which may have been freed. @throws RangeError */
export function requireWithin(range: MemoryRange, address: bigint, byteLength: number): void {
  const end = Number(address - range.address) + byteLength
  if (end > range.byteLength) {
    throw new RangeError(`the view ends at byte ${end} of its memory, which has only ${range.byteLength} bytes now`)
  }
}

/**
 * Returns the first element and the number of elements from `start` to before `end`. Negative numbers count from the
 * end.
 */
export function sliceOf(start: number, end: number, length: number, api: string): { first: number; length: number } {
  if (Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start <= end && end <= length) {
    return { first: start, length: end - start }
  }
  const first = boundary(start, 'start', length, api)
  const last = boundary(end, 'end', length, api)
  if (last < first) throw outOfRange(api, 'end', `at or behind start (${start})`, end)
  return { first, length: last - first }
}

function boundary(value: number, name: string, length: number, api: string): number {
  const index = requireInteger(value, api, name, -length, length)
  return index < 0 ? index + length : index
}

/** Returns how many elements of another type the same bytes hold. @throws RangeError when they do not fit */
export function reinterpretedLength(address: bigint, byteLength: number, dtype: ElementType, api: string): number {
  const { bytes, alignment } = requireElementType(dtype, api)
  if (byteLength % bytes !== 0) {
    throw outOfRange(api, 'dtype', `a type of which ${byteLength} bytes are whole elements`, nameOfType(dtype))
  }
  if (address % BigInt(alignment) !== 0n) {
    throw outOfRange(
      api,
      'dtype',
      `a type that may start at an address aligned less than ${alignment}`,
      nameOfType(dtype),
    )
  }
  return byteLength / bytes
}

/**
 * Returns a copy's checked source: a typed array, also over page-locked memory, or device memory. It must match the
 * target.
 */
export function checkSource(source: unknown, target: Elements, api: string): ArrayBufferView | MemoryRange {
  if (isInstance(source, PinnedBuffer)) return checkArray(source.array, target, api, 'source', source.dtype)
  if (ArrayBuffer.isView(source)) return checkArray(source, target, api, 'source')
  if (!isMemoryLike(source)) throw wrongType(api, 'source', 'a typed array or memory', source)
  const range = toMemoryRange(source, api, 'source')
  if (range.dtype !== undefined && range.dtype !== target.dtype) {
    throw wrongType(api, 'source', `of ${nameOfType(target.dtype)} (reinterpret() one of them)`, range.dtype)
  }
  checkBytes(range.byteLength, target, api, 'source')
  return range
}

/** Returns a copy's checked target: a typed array, also over page-locked memory. It must match the source. */
export function checkTarget(target: unknown, source: Elements, api: string): ArrayBufferView {
  if (isInstance(target, PinnedBuffer)) return checkArray(target.array, source, api, 'target', target.dtype)
  return checkArray(target, source, api, 'target')
}

function checkArray(
  array: unknown,
  other: Elements,
  api: string,
  name: string,
  dtype: ElementType = other.dtype,
): ArrayBufferView {
  if (dtype !== other.dtype) throw wrongType(api, name, `of ${nameOfType(other.dtype)}`, nameOfType(dtype))
  requireArrayFor(array, other.dtype, api, name)
  checkBytes(byteLengthOf(array), other, api, name)
  return array
}

function checkBytes(byteLength: number, other: Elements, api: string, name: string): void {
  if (byteLength === other.byteLength) return
  const elements = byteLength / bytesOfElement(other.dtype)
  throw outOfRange(api, name, `of ${other.length} elements, as many as the buffer has (slice() takes parts)`, elements)
}
