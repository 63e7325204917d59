import { checkRelease, driverError, processIsEnding, Status, scratch, type Words, wordsOf } from '@shoal/cuda-base'
import { driver } from '@shoal/cuda-sys/driver'
import { contextSlot, type NativeCall, slots32 } from '@shoal/ffi/calls'
import type { Stream } from '../stream.js'

/**
 * `cuMemAllocAsync` and `cuMemFreeAsync` without the checks of the generated functions, which this package has made
 * already, and without a bigint for the address: a program that allocates on streams does it all the time.
 */
let allocate: NativeCall | undefined
let free: NativeCall | undefined
let outAddress: Words | undefined
let outCells: Int32Array | undefined

const fourGiB = 2 ** 32

function allocateCall(context: Words, stream: Words, byteLength: number): number {
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

/** Allocates (`cuMemAllocAsync`): {@link allocatedLow} and {@link allocatedHigh} are the halves of the address then. */
export function allocateOn(stream: Stream, byteLength: number): void {
  const status = allocateCall(stream._callContext, stream._words, byteLength)
  if (status !== Status.success) throw driverError(status, 'cuMemAllocAsync')
  stream.context._addChild()
}

/** As a signed number, which takes no memory of its own. */
export function allocatedLow(): number {
  outCells ??= scratch().i32
  return outCells[0] as number
}

export function allocatedHigh(): number {
  outCells ??= scratch().i32
  return outCells[1] as number
}

/** Frees (`cuMemFreeAsync`), unless the memory went with its context or goes with the process. */
export function freeOn(stream: Stream, low: number, high: number): void {
  if (stream.context.disposed || processIsEnding()) return
  const status = freeCall(stream._callContext, stream._words, low, high)
  if (status !== Status.success) checkRelease(status, 'cuMemFreeAsync')
}

function freeCall(context: Words, stream: Words, low: number, high: number): number {
  free ??= driver.bind('cuMemFreeAsync', 11020, 2)
  slots32[0] = low
  slots32[1] = high
  slots32[2] = stream.low
  slots32[3] = stream.high
  slots32[2 * contextSlot] = context.low
  slots32[2 * contextSlot + 1] = context.high
  return free()
}
