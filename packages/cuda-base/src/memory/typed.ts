import {
  type DType,
  describeValue,
  dtypeInfo,
  isMemoryLike,
  type MemoryLike,
  type MemoryRange,
  toMemoryRange,
} from '@shoal/types'
import { requireDType, requireInteger, requireOptions } from '../checks.js'
import { requireArrayFor } from './hostArrays.js'
import { PinnedMemoryObject } from './pinnedMemory.js'

/** Which part of another object's memory. */
export interface ViewOptions {
  /** Bytes from its start. Default: 0. */
  readonly byteOffset?: number | undefined
  /** Number of elements. Default: as many as fit. */
  readonly length?: number | undefined
}

/** Elements in memory: what a copy from or to it has to match. */
export interface Elements {
  readonly dtype: DType
  readonly length: number
  readonly byteLength: number
}

/** Where a view of another object's memory starts, and its length. @throws RangeError when it does not lie within. */
export function viewOf(memory: MemoryLike, dtype: DType, options: ViewOptions): { address: bigint; length: number } {
  const { bytes, alignment } = requireDType(dtype)
  requireOptions(options, 'options', '{ byteOffset }')
  const { address, byteLength } = toMemoryRange(memory)
  const byteOffset = requireInteger(options.byteOffset ?? 0, 'byteOffset', 0, byteLength)
  const first = address + BigInt(byteOffset)
  if (first % BigInt(alignment) !== 0n) {
    throw new RangeError(`byteOffset must be a multiple of ${alignment} for ${dtype}, not ${byteOffset}`)
  }
  const available = Math.floor((byteLength - byteOffset) / bytes)
  return { address: first, length: requireInteger(options.length ?? available, 'length', 0, available) }
}

/** Of the memory that a view lies in part may have been given back. @throws RangeError */
export function requireWithin(range: MemoryRange, address: bigint, byteLength: number): void {
  const end = Number(address - range.address) + byteLength
  if (end > range.byteLength) {
    throw new RangeError(`the view ends at byte ${end} of its memory, which has only ${range.byteLength} bytes now`)
  }
}

/** The elements from `start` up to, not including, `end`; negative numbers count from the end. */
export function sliceOf(start: number, end: number, length: number): { first: number; length: number } {
  const first = boundary(start, 'start', length)
  const last = boundary(end, 'end', length)
  if (last < first) throw new RangeError(`end (${end}) must not be before start (${start})`)
  return { first, length: last - first }
}

function boundary(value: number, name: string, length: number): number {
  const index = requireInteger(value, name, -length, length)
  return index < 0 ? index + length : index
}

/** How many elements of another dtype the same bytes are. @throws RangeError when they do not fit. */
export function reinterpretedLength(address: bigint, byteLength: number, dtype: DType): number {
  const { bytes, alignment } = requireDType(dtype)
  if (byteLength % bytes !== 0) {
    throw new RangeError(`${byteLength} bytes are not a whole number of ${dtype} (${bytes} bytes each)`)
  }
  if (address % BigInt(alignment) !== 0n) {
    throw new RangeError(`a view that does not start at a multiple of ${alignment} bytes cannot hold ${dtype}`)
  }
  return byteLength / bytes
}

/** What a copy reads: a typed array, page-locked memory as one, or memory of a device. It has to match the target. */
export function checkSource(source: unknown, target: Elements): ArrayBufferView | MemoryRange {
  if (source instanceof PinnedMemoryObject) {
    return checkArray(source.array as ArrayBufferView, target, 'source', source.dtype)
  }
  if (ArrayBuffer.isView(source)) return checkArray(source, target, 'source')
  if (!isMemoryLike(source)) {
    throw new TypeError(`source must be a typed array or memory, not ${describeValue(source)}`)
  }
  const range = toMemoryRange(source)
  if (range.dtype !== undefined && range.dtype !== target.dtype) {
    throw new TypeError(`source holds ${range.dtype}, this buffer ${target.dtype}; reinterpret() one of them`)
  }
  checkBytes(range.byteLength, target, 'source')
  return range
}

/** The array that a copy writes: a typed array, or page-locked memory as one. It has to match the source. */
export function checkTarget(target: unknown, source: Elements): ArrayBufferView {
  if (target instanceof PinnedMemoryObject) {
    return checkArray(target.array as ArrayBufferView, source, 'target', target.dtype)
  }
  return checkArray(target as ArrayBufferView, source, 'target')
}

function checkArray(array: ArrayBufferView, other: Elements, name: string, dtype?: DType): ArrayBufferView {
  if (dtype !== undefined && dtype !== other.dtype) {
    throw new TypeError(`${name} holds ${dtype}, this buffer ${other.dtype}`)
  }
  requireArrayFor(array, other.dtype, name)
  checkBytes(array.byteLength, other, name)
  return array
}

function checkBytes(byteLength: number, other: Elements, name: string): void {
  if (byteLength === other.byteLength) return
  const elements = byteLength / dtypeInfo(other.dtype).bytes
  throw new RangeError(
    `${name} has ${elements} elements, the buffer ${other.length}; use slice() to copy a part of either`,
  )
}
