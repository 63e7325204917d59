import type { OwnedArrayOf } from '@shoal/types'
import { isCaptured, isCapturing, noteOwnMemory } from '../../core/context/capturing.js'
import { isGone, Status } from '../../core/errors.js'
import { processIsEnding } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import type { Stream } from '../../core/stream/stream.js'
import { halvesOf, type U64Halves, u64Of } from '../../core/u64Halves.js'

// Allocating and freeing on a stream without the checks of the generated functions, which this package has already
// made, and without a bigint for the address: programs that allocate on streams do it very often.

/** The cells for the address of an allocation. */
let outCells: OwnedArrayOf<'i32'>
let outAddress: U64Halves | undefined

const fourGiB = 2 ** 32

/** Addresses that graphs allocate. A captured stream may free them. */
const ofGraphs = new Set<number>()
const addressOf = (low: number, high: number): number => (high >>> 0) * fourGiB + (low >>> 0)

/** Registers an allocation on a stream while this thread captures. */
export function noteAllocation(stream: Stream, low: number, high: number, byteLength: number): void {
  if (!isCaptured(stream.context, stream._handle)) return
  ofGraphs.add(addressOf(low, high))
  noteOwnMemory(stream._handle, stream.context._handle, u64Of({ low, high }), byteLength)
}

/**
 * True while the stream is capturing and the captured graph did not allocate the memory. The driver refuses such a
 * free.
 */
export function isFreedLater(stream: Stream, low: number, high: number): boolean {
  return !ofGraphs.has(addressOf(low, high)) && isCaptured(stream.context, stream._handle)
}

/**
 * Allocates on a stream (`cuMemAllocAsync`, `cudaMallocAsync`). Returns the halves of the address, valid until the next
 * call.
 */
export function allocateOn(stream: Stream, byteLength: number): OwnedArrayOf<'i32'> {
  const { context } = stream
  let status = allocateNow(stream, byteLength)
  if (status === Status.outOfMemory) status = context._withRoom(() => allocateNow(stream, byteLength), status)
  if (status !== Status.success) throw context._allocationError(status, 'memAllocAsync', byteLength)
  context._addChild()
  // The capture query overwrites the cells of the address.
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

/** Frees on a stream (`cuMemFreeAsync`, `cudaFreeAsync`), unless the context is gone or the process is ending. */
export function freeOn(stream: Stream, low: number, high: number): void {
  const { context, _halves: handle, _callContext: current } = stream
  if (context.disposed || processIsEnding()) return
  if (ofGraphs.size > 0) ofGraphs.delete(addressOf(low, high))
  const status = context._cuda.unchecked.memFreeAsync(current, low, high, handle)
  if (status !== Status.success && !isGone(status)) throw context._error(status, 'memFreeAsync')
}
