import { type CUdeviceptr, type CUstream, cuMemsetD2D8Async, cuMemsetD2D32Async } from '@shoal/cuda-sys/driver'
import { cuMemsetD16AsyncUnchecked, cuMemsetD32AsyncUnchecked } from '../../core/calls/uncheckedCalls.gen.js'
import type { Context } from '../../core/context/context.js'
import { check, Status } from '../../core/errors.js'
import { type U64Halves, u64Of } from '../../core/u64Halves.js'

/**
 * Queues a fill with `count` copies of an element (`cuMemsetD8Async` … `cuMemsetD32Async`, `cudaMemsetAsync`).
 * libcudart fills only with bytes, so other elements use libcuda.
 */
export function queueFill(context: Context, stream: U64Halves, target: bigint, element: DataView, count: number): void {
  const size = element.byteLength
  if (isUniform(element)) {
    queueBytes(context, stream, target, element.getUint8(0), count * size)
  } else if (count === 0) {
    return // CUDA refuses an empty fill
  } else if (size === 2) {
    const status = cuMemsetD16AsyncUnchecked(context._halves, target, element.getUint16(0, true), count, stream)
    check(status, 'cuMemsetD16Async')
  } else if (size === 4) {
    const status = cuMemsetD32AsyncUnchecked(context._halves, target, element.getInt32(0, true), count, stream)
    check(status, 'cuMemsetD32Async')
  } else {
    queueWideFill(context, u64Of(stream) as CUstream, target as CUdeviceptr, element, count)
  }
}

/** Queues a fill of `byteLength` bytes with one byte. */
export function queueBytes(
  context: Context,
  stream: U64Halves,
  target: bigint,
  byte: number,
  byteLength: number,
): void {
  if (byteLength === 0) return
  const status = context._cuda.unchecked.memsetD8Async(context._halves, target, byte, byteLength, stream)
  if (status !== Status.success) throw context._error(status, 'memsetD8Async')
}

/** Fills with elements wider than CUDA's widest memset: one strided fill per 32-bit word or byte of the element. */
function queueWideFill(
  context: Context,
  stream: CUstream,
  target: CUdeviceptr,
  element: DataView,
  count: number,
): void {
  const pitch = element.byteLength
  const isWords = pitch % 4 === 0
  context.run(() => {
    for (let offset = 0; offset < pitch; offset += isWords ? 4 : 1) {
      const column = (target + BigInt(offset)) as CUdeviceptr
      if (isWords) {
        const word = element.getUint32(offset, true)
        check(cuMemsetD2D32Async(column, pitch, word, 1, count, stream), 'cuMemsetD2D32Async')
      } else {
        check(cuMemsetD2D8Async(column, pitch, element.getUint8(offset), 1, count, stream), 'cuMemsetD2D8Async')
      }
    }
  })
}

/** Whether all bytes of an element are equal. */
function isUniform(element: DataView): boolean {
  if (element.byteLength === 4) {
    const word = element.getInt32(0, true)
    return word === Math.imul(word & 0xff, 0x01010101)
  }
  const first = element.getUint8(0)
  for (let offset = 1; offset < element.byteLength; offset += 1) if (element.getUint8(offset) !== first) return false
  return true
}
