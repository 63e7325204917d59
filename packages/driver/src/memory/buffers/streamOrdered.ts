import type { OwnedArrayOf } from '@shoal/types'
import { isCaptured, isCapturing, noteOwnMemory } from '../../core/context/capturing.js'
import { isGone, Status } from '../../core/errors.js'
import { processIsEnding } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import type { Stream } from '../../core/stream/stream.js'
import { halvesOf, type U64Halves, u64Of } from '../../core/u64Halves.js'

// Allocation and free on a stream without the checks of the generated functions, which this package has made already,
// and without a bigint for the address: a program that allocates on streams does it all the time.

/** Where an allocation leaves the address. */
let outCells: OwnedArrayOf<'i32'>
let outAddress: U64Halves | undefined

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
  if (outAddress === undefined) {
    outCells = scratch().i32
    outAddress = halvesOf(scratch().address)
  }
  return context._cuda.unchecked.memAllocAsync(current, outAddress, byteLength, handle)
}

/** Frees (`cuMemFreeAsync`, `cudaFreeAsync`), unless the memory went with its context or goes with the process. */
export function freeOn(stream: Stream, low: number, high: number): void {
  const { context, _halves: handle, _callContext: current } = stream
  if (context.disposed || processIsEnding()) return
  if (ofGraphs.size > 0) ofGraphs.delete(addressOf(low, high))
  const status = context._cuda.unchecked.memFreeAsync(current, low, high, handle)
  if (status !== Status.success && !isGone(status)) throw context._error(status, 'memFreeAsync')
}
