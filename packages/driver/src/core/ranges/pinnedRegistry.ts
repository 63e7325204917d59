import type { U64Halves } from '../u64Halves.js'
import { bufferOf } from './arrayBytes.js'

/** Page-locked memory that a copy uses: dispose() frees it only after the last `_unhold`. */
export interface PinnedOwner {
  /** @internal The address of the first byte of its ArrayBuffer. */
  readonly _start: U64Halves
  /** @internal */
  _hold(): void
  /** @internal */
  _unhold(): void
}

const byArrayBuffer = new WeakMap<ArrayBufferLike, PinnedOwner>()

/** Copies know the memory from now on by its ArrayBuffer, which keeps the object alive. */
export function registerPinned(buffer: ArrayBufferLike, memory: PinnedOwner): void {
  byArrayBuffer.set(buffer, memory)
}

/** The ArrayBuffer is ordinary memory again. */
export function forgetPinned(buffer: ArrayBufferLike): void {
  byArrayBuffer.delete(buffer)
}

/** The page-locked memory that a typed array looks into, if any. */
export function pinnedOwnerOf(array: ArrayBufferView): PinnedOwner | undefined {
  return byArrayBuffer.get(bufferOf(array))
}
