import { type CUdeviceptr, type CUstream, cuMemsetD2D8Async, cuMemsetD2D32Async, driver } from '@shoal/cuda-sys/driver'
import { contextSlot, type NativeCall, slots32, slots64 } from '@shoal/ffi/calls'
import type { CudaLibrary } from '../../core/calls/cudaLibrary.js'
import type { Context } from '../../core/context/context.js'
import { check, driverError, Status } from '../../core/errors.js'
import { type U64Halves, u64Of } from '../../core/u64Halves.js'

const fourGiB = 2 ** 32

/** The library whose `fillBytes` this is: that of the context used last. */
let library: CudaLibrary | undefined
let fillBytes: NativeCall
/** Those of libcuda, by the bytes of an element. */
const fillElements: (NativeCall | undefined)[] = []

/**
 * Queues the writing of `count` copies of an element (`cuMemsetD8Async` … `cuMemsetD32Async`, `cudaMemsetAsync`).
 * libcudart only fills with bytes: other elements go through libcuda.
 */
export function queueFill(context: Context, stream: U64Halves, target: bigint, element: DataView, count: number): void {
  const size = element.byteLength
  if (isUniform(element)) {
    queueBytes(context, stream, target, element.getUint8(0), count * size)
  } else if (size === 2 || size === 4) {
    const api = size === 2 ? 'cuMemsetD16Async' : 'cuMemsetD32Async'
    const value = size === 2 ? element.getUint16(0, true) : element.getInt32(0, true)
    const call = (fillElements[size] ??= driver.bind(api, 3020, 4))
    const status = fill(call, context, stream, target, value, count)
    if (status !== Status.success) throw driverError(status, api)
  } else if (count !== 0) {
    queueWideFill(context, u64Of(stream) as CUstream, target as CUdeviceptr, element, count)
  }
}

/** Queues the writing of one byte `byteLength` times. */
export function queueBytes(
  context: Context,
  stream: U64Halves,
  target: bigint,
  byte: number,
  byteLength: number,
): void {
  if (context._cuda !== library) {
    fillBytes = context._cuda.fillBytes.bind()
    library = context._cuda
  }
  const status = fill(fillBytes, context, stream, target, byte, byteLength)
  if (status !== Status.success) throw library.error(status, library.fillBytes.api)
}

/**
 * Without the checks of the generated functions, which are made already. Gives the status; CUDA has no fill of nothing.
 */
function fill(
  call: NativeCall,
  { _halves: context }: Context,
  stream: U64Halves,
  target: bigint,
  value: number,
  count: number,
): number {
  if (count === 0) return Status.success
  slots64[0] = target
  const slots = slots32
  slots[2] = value
  slots[4] = count
  slots[5] = count / fourGiB
  slots[6] = stream.low
  slots[7] = stream.high
  slots[2 * contextSlot] = context.low
  slots[2 * contextSlot + 1] = context.high
  return call()
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
  if (element.byteLength === 4) {
    const word = element.getInt32(0, true)
    return word === Math.imul(word & 0xff, 0x01010101)
  }
  const first = element.getUint8(0)
  for (let offset = 1; offset < element.byteLength; offset += 1) if (element.getUint8(offset) !== first) return false
  return true
}
