import { nameOfType, orderBehind } from '@shoal/driver/basics'
import { type ElementType, isMemoryLike, type MemoryRange, toMemoryRange } from '@shoal/types'
import type { Allocation } from './allocation.js'
import { requireBytesFor } from './hostCopies.js'

interface Buffer {
  readonly dtype: ElementType
  readonly byteLength: number
  readonly _allocation: Allocation
}

/** Checks host elements or a memory range of the same length as the buffer. @throws TypeError, RangeError */
export function requireOperand(
  buffer: Buffer,
  operand: unknown,
  api: string,
  parameter: string,
): Uint8Array | MemoryRange {
  if (!isMemoryLike(operand)) {
    const array = requireBytesFor(operand, buffer.dtype, api, parameter)
    requireLength(buffer, array.byteLength, api, parameter)
    return array
  }
  const range = toMemoryRange(operand, api, parameter)
  if (range.dtype !== undefined && range.dtype !== buffer.dtype) {
    throw new TypeError(
      `${api}: ${parameter} has elements of ${range.dtype}, the buffer of ${nameOfType(buffer.dtype)}`,
    )
  }
  requireLength(buffer, range.byteLength, api, parameter)
  // Copies run on the default stream.
  orderBehind(0n, buffer._allocation.live.context, range)
  return range
}

function requireLength(buffer: Buffer, bytes: number, api: string, parameter: string): void {
  if (bytes === buffer.byteLength) return
  throw new RangeError(
    `${api}: ${parameter} has ${bytes} bytes, the buffer ${buffer.byteLength}; use slice() for parts`,
  )
}

export function requireWritable(range: MemoryRange, api: string): void {
  if (range.readOnly === true) throw new TypeError(`${api}: target is read-only memory`)
}
