import { scratch, type Words, wordsOf } from '@shoal/cuda-base'
import { driver } from '@shoal/cuda-sys/driver'
import { contextSlot, type NativeCall, slots32 } from '@shoal/ffi/calls'

/**
 * `cuMemAllocAsync` and `cuMemFreeAsync` without the checks of the generated functions, which this package has made
 * already, and without a bigint for the address: a program that allocates on streams does it all the time.
 */
let allocate: NativeCall | undefined
let free: NativeCall | undefined
let outAddress: Words | undefined
let outCells: Uint32Array | undefined

const fourGiB = 2 ** 32

/** Returns the status; afterwards {@link allocatedLow} and {@link allocatedHigh} are the halves of the address. */
export function allocateCall(context: Words, stream: Words, byteLength: number): number {
  allocate ??= driver.bind('cuMemAllocAsync', 11020, 3)
  outAddress ??= wordsOf(scratch().address)
  slots32[0] = outAddress.low
  slots32[1] = outAddress.high
  slots32[2] = byteLength
  slots32[3] = byteLength < fourGiB ? 0 : Math.floor(byteLength / fourGiB)
  slots32[4] = stream.low
  slots32[5] = stream.high
  slots32[2 * contextSlot] = context.low
  slots32[2 * contextSlot + 1] = context.high
  return allocate()
}

export function allocatedLow(): number {
  outCells ??= scratch().u32
  return outCells[0] as number
}

export function allocatedHigh(): number {
  outCells ??= scratch().u32
  return outCells[1] as number
}

/** Returns the status. */
export function freeCall(context: Words, stream: Words, low: number, high: number): number {
  free ??= driver.bind('cuMemFreeAsync', 11020, 2)
  slots32[0] = low
  slots32[1] = high
  slots32[2] = stream.low
  slots32[3] = stream.high
  slots32[2 * contextSlot] = context.low
  slots32[2 * contextSlot + 1] = context.high
  return free()
}
