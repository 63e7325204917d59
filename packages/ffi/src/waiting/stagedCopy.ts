import { addon } from '../addon/load.js'
import type { NativeMemory } from '../memory/nativeMemory.js'

/**
 * A copy of host memory through a page-locked block, a part at a time, made by a host function that a stream calls. The
 * block has room for two parts, which take turns: while the device is at one, threads are at the other.
 */
export interface StagedCopy {
  /**
   * Address of the host function, a `CUhostFn`: each call copies the next part between its half of the block and the
   * memory.
   */
  readonly functionAddress: bigint
  /** What the host function must be given. */
  readonly userData: bigint
  /** Call it when the host function is called no more. */
  end(): void
}

let threadsOfPart: number | undefined

/** Threads that copy a part together. Few processors have work enough of their own. */
function copyingThreads(): number {
  // node:os is not loaded before there is something to copy.
  threadsOfPart ??= Math.min(4, Math.max(1, Math.floor(process.getBuiltinModule('node:os').availableParallelism() / 4)))
  return threadsOfPart
}

/**
 * Copies out of an array whose owner may change, detach or drop it meanwhile: what arrives then is undefined, and
 * nothing worse happens. The caller keeps the array reachable. Undefined where the system forbids such a copy.
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

/** Copies into memory of ours, which lives as long as the copy does. */
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
