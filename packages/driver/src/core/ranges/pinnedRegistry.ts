import type { U64Halves } from '../u64Halves.js'
import { bufferOf } from './arrayBytes.js'

/** Page-locked memory that a copy uses. dispose() frees it only after the last `_unhold`. */
export interface PinnedOwner {
  /** @internal The address of the first byte of its ArrayBuffer. */
  readonly _start: U64Halves
  /** @internal */
  _hold(): void
  /** @internal */
  _unhold(): void
}

const byArrayBuffer = new WeakMap<ArrayBufferLike, PinnedOwner>()

/** Registers page-locked memory by its ArrayBuffer, which keeps the object alive. Copies find the memory here. */
export function registerPinned(buffer: ArrayBufferLike, memory: PinnedOwner): void {
  byArrayBuffer.set(buffer, memory)
}

/** Removes the registration. The ArrayBuffer is ordinary memory again. */
export function forgetPinned(buffer: ArrayBufferLike): void {
  byArrayBuffer.delete(buffer)
}

/** Returns the page-locked memory behind a typed array, if any. */
export function pinnedOwnerOf(array: ArrayBufferView): PinnedOwner | undefined {
  return byArrayBuffer.get(bufferOf(array))
}
