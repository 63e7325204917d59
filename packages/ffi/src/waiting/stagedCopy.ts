import { addon } from '../addon/load.js'
import type { NativeMemory } from '../memory/nativeMemory.js'

/**
 * A host copy in parts through a page-locked block.
 *
 * A host function that a stream calls makes it.
 *
 * The block holds two parts: the device uses one while threads copy the other.
 */
export interface StagedCopy {
  /**
   * Address of the host function, a `CUhostFn`.
   *
   * Each call copies the next part between its half of the block and the memory.
   */
  readonly functionAddress: bigint
  /** Argument of the host function. */
  readonly userData: bigint
  /** Ends the copy. The host function must not be called any more. */
  end(): void
}

let threadsOfPart: number | undefined

/** Returns the number of threads that copy one part together; fewer on few processors. */
function copyingThreads(): number {
  // node:os is loaded only when there is a copy.
  threadsOfPart ??= Math.min(4, Math.max(1, Math.floor(process.getBuiltinModule('node:os').availableParallelism() / 4)))
  return threadsOfPart
}

/**
 * Copies from an array whose owner may change, detach or free it during the copy.
 *
 * The copied data are undefined then, but the copy is safe. The caller must keep the array reachable. Returns undefined
 * if the system forbids such a copy.
 */
export function stagedCopyFrom(
  block: bigint,
  array: ArrayBufferView,
  byteLength: number,
  part: number,
  threads = copyingThreads(),
): StagedCopy | undefined {
  const native = addon()
  return native.canReadArrays ? start(block, native.addressOf(array), byteLength, part, threads, true) : undefined
}

/** Copies to native memory, which stays allocated during the copy. */
export function stagedCopyTo(
  block: bigint,
  memory: NativeMemory,
  byteLength: number,
  part: number,
  threads = copyingThreads(),
): StagedCopy {
  return start(block, memory.address, byteLength, part, threads, false)
}

function start(
  block: bigint,
  memory: bigint,
  byteLength: number,
  part: number,
  threads: number,
  isUpload: boolean,
): StagedCopy {
  const native = addon()
  const copy = native.startHostCopy(block, memory, byteLength, part, isUpload, threads)
  return {
    functionAddress: native.copyPartAddress,
    userData: native.hostCopyData(copy),
    end: () => native.endHostCopy(copy),
  }
}
