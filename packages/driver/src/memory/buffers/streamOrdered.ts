import { contextSlot, type NativeCall, slots32 } from '@shoal/ffi/calls'
import type { OwnedArrayOf } from '@shoal/types'
import type { CudaLibrary } from '../../core/calls/cudaLibrary.js'
import { isCaptured, isCapturing, noteOwnMemory } from '../../core/context/capturing.js'
import { isGone, Status } from '../../core/errors.js'
import { processIsEnding } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import type { Stream } from '../../core/stream/stream.js'
import { halvesOf, type U64Halves, u64Of } from '../../core/u64Halves.js'

// Allocation and free on a stream without the checks of the generated functions, which this package has made already,
// and without a bigint for the address: a program that allocates on streams does it all the time.

/** The library whose functions these are: that of the stream used last, so that most calls find them here. */
let library: CudaLibrary | undefined
let allocate: NativeCall
let free: NativeCall
/** Where an allocation leaves the address. */
let outCells: OwnedArrayOf<'i32'>
let outAddress: U64Halves

const fourGiB = 2 ** 32

/** Where graphs have memory of their own, which a stream that is captured may free. */
const ofGraphs = new Set<number>()
const addressOf = (low: number, high: number): number => (high >>> 0) * fourGiB + (low >>> 0)

/** Says what was allocated on a stream while this thread captures. */
export function noteAllocation(stream: Stream, low: number, high: number, byteLength: number): void {
  if (!isCaptured(stream.context, stream._handle)) return
  ofGraphs.add(addressOf(low, high))
  noteOwnMemory(stream._handle, stream.context._handle, u64Of({ low, high }), byteLength)
}

/**
 * Whether the driver would refuse to free memory on a stream now: it is none of a graph, and the stream is captured
 * into one.
 */
export function isFreedLater(stream: Stream, low: number, high: number): boolean {
  return !ofGraphs.has(addressOf(low, high)) && isCaptured(stream.context, stream._handle)
}

function bindTo(used: CudaLibrary): void {
  const calls = [used.allocate.bind(), used.free.bind()] as const
  ;[allocate, free] = calls
  const out = scratch()
  outCells = out.i32
  outAddress = halvesOf(out.address)
  library = used
}

/** Allocates (`cuMemAllocAsync`, `cudaMallocAsync`): the halves of the address, until the next call. */
export function allocateOn(stream: Stream, byteLength: number): OwnedArrayOf<'i32'> {
  const { context } = stream
  let status = allocateNow(stream, byteLength)
  if (status === Status.outOfMemory) status = context._withRoom(() => allocateNow(stream, byteLength), status)
  if (status !== Status.success) throw context._allocationError(status, 'memAllocAsync', byteLength)
  context._addChild()
  // Asking takes the cells of the address.
  if (isCapturing()) {
    const [low = 0, high = 0] = outCells
    noteAllocation(stream, low, high, byteLength)
    outCells[0] = low
    outCells[1] = high
  }
  return outCells
}

function allocateNow({ context, _halves: handle, _callContext: current }: Stream, byteLength: number): number {
  if (context._cuda !== library) bindTo(context._cuda)
  slots32[0] = outAddress.low
  slots32[1] = outAddress.high
  slots32[2] = byteLength
  slots32[3] = byteLength < fourGiB ? 0 : Math.floor(byteLength / fourGiB)
  slots32[4] = handle.low
  slots32[5] = handle.high
  slots32[2 * contextSlot] = current.low
  slots32[2 * contextSlot + 1] = current.high
  return allocate()
}

/** Frees (`cuMemFreeAsync`, `cudaFreeAsync`), unless the memory went with its context or goes with the process. */
export function freeOn(stream: Stream, low: number, high: number): void {
  const { context, _halves: handle, _callContext: current } = stream
  if (context.disposed || processIsEnding()) return
  if (ofGraphs.size > 0) ofGraphs.delete(addressOf(low, high))
  if (context._cuda !== library) bindTo(context._cuda)
  slots32[0] = low
  slots32[1] = high
  slots32[2] = handle.low
  slots32[3] = handle.high
  slots32[2 * contextSlot] = current.low
  slots32[2 * contextSlot + 1] = current.high
  const status = free()
  if (status !== Status.success && !isGone(status)) throw context._error(status, 'memFreeAsync')
}
