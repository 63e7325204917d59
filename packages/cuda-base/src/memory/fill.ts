import {
  type CUdeviceptr,
  type CUstream,
  cuMemsetD2D32Async,
  cuMemsetD8Async,
  cuMemsetD16Async,
  cuMemsetD32Async,
} from '@shoal/cuda-sys/driver'
import type { Context } from '../context.js'
import { check } from '../errors.js'

/** Queues the writing of `count` copies of an element of 1, 2, 4, 8 or 16 bytes. */
export function queueFill(context: Context, stream: CUstream, target: bigint, element: DataView, count: number): void {
  if (count === 0) return
  const to = target as CUdeviceptr
  const size = element.byteLength
  if (isUniform(element)) {
    const byte = element.getUint8(0)
    context._call('cuMemsetD8Async', () => cuMemsetD8Async(to, byte, count * size, stream))
  } else if (size === 2) {
    const bits = element.getUint16(0, true)
    context._call('cuMemsetD16Async', () => cuMemsetD16Async(to, bits, count, stream))
  } else if (size === 4) {
    const bits = element.getUint32(0, true)
    context._call('cuMemsetD32Async', () => cuMemsetD32Async(to, bits, count, stream))
  } else {
    queueWideFill(context, stream, target, element, count)
  }
}

/** Elements wider than CUDA's widest memset, as columns of 32-bit words that are one element apart. */
function queueWideFill(context: Context, stream: CUstream, target: bigint, element: DataView, count: number): void {
  const pitch = element.byteLength
  context.run(() => {
    for (let offset = 0; offset < pitch; offset += 4) {
      const column = (target + BigInt(offset)) as CUdeviceptr
      const bits = element.getUint32(offset, true)
      check(cuMemsetD2D32Async(column, pitch, bits, 1, count, stream), 'cuMemsetD2D32Async')
    }
  })
}

/** Whether all bytes of an element are the same. */
export function isUniform(element: DataView): boolean {
  const first = element.getUint8(0)
  for (let offset = 1; offset < element.byteLength; offset += 1) if (element.getUint8(offset) !== first) return false
  return true
}
