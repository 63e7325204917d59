import {
  type CUdeviceptr,
  type CUstream,
  cuMemsetD2D8Async,
  cuMemsetD2D32Async,
  cuMemsetD16Async,
  cuMemsetD32Async,
} from '@shoal/cuda-sys/driver/common'
import { callInContext } from '@shoal/ffi'
import type { Context } from '../context/context.js'
import { check, Status } from '../errors.js'

/**
 * Queues the writing of `count` copies of an element (`cuMemsetD8Async` … `cuMemsetD32Async`, `cudaMemsetAsync`). libcudart only
 * fills with bytes: other elements go through libcuda.
 */
export function queueFill(context: Context, stream: CUstream, target: bigint, element: DataView, count: number): void {
  if (count === 0) return
  const to = target as CUdeviceptr
  const size = element.byteLength
  if (isUniform(element)) queueBytes(context, stream, target, element.getUint8(0), count * size)
  else if (size === 2) {
    callInContext(context.handle)
    check(cuMemsetD16Async(to, element.getUint16(0, true), count, stream), 'cuMemsetD16Async')
  } else if (size === 4) {
    callInContext(context.handle)
    check(cuMemsetD32Async(to, element.getUint32(0, true), count, stream), 'cuMemsetD32Async')
  } else {
    queueWideFill(context, stream, to, element, count)
  }
}

/** Queues the writing of one byte `byteLength` times. */
export function queueBytes(context: Context, stream: CUstream, target: bigint, byte: number, byteLength: number): void {
  if (byteLength === 0) return
  callInContext(context.handle)
  const status = context._cuda.calls.memsetD8Async(target as CUdeviceptr, byte, byteLength, stream)
  if (status !== Status.success) throw context._error(status, 'memsetD8Async')
}

/** Elements wider than CUDA's widest memset, as columns of 32-bit words, or of bytes, that are one element apart. */
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

/** Whether all bytes of an element are the same. */
function isUniform(element: DataView): boolean {
  const first = element.getUint8(0)
  for (let offset = 1; offset < element.byteLength; offset += 1) if (element.getUint8(offset) !== first) return false
  return true
}
