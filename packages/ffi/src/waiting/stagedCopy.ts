import { addon } from '../addon/load.js'
import type { NativeMemory } from '../memory/nativeMemory.js'

/** A copy of host memory through a page-locked block, a part at a time, made by a host function that a stream calls. */
export interface StagedCopy {
  /** Address of the host function, a `CUhostFn`: each call copies the next part between the block and the memory. */
  readonly functionAddress: bigint
  /** What the host function must be given. */
  readonly userData: bigint
  /** Call it when the host function is called no more. */
  end(): void
}

/**
 * Copies out of an array whose owner may change, detach or drop it meanwhile: what arrives then is undefined, and nothing
 * worse happens. The caller keeps the array reachable. Undefined where the system forbids such a copy.
 */
export function stagedCopyFrom(
  block: bigint,
  array: ArrayBufferView,
  byteLength: number,
  part: number,
): StagedCopy | undefined {
  const native = addon()
  return native.canReadArrays ? start(block, native.addressOf(array), byteLength, part, true) : undefined
}

/** Copies into memory of ours, which lives as long as the copy does. */
export function stagedCopyTo(block: bigint, memory: NativeMemory, byteLength: number, part: number): StagedCopy {
  return start(block, memory.address, byteLength, part, false)
}

function start(block: bigint, memory: bigint, byteLength: number, part: number, isUpload: boolean): StagedCopy {
  const native = addon()
  const copy = native.startHostCopy(block, memory, byteLength, part, isUpload)
  return {
    functionAddress: native.copyPartAddress,
    userData: native.hostCopyData(copy),
    end: () => native.endHostCopy(copy),
  }
}
