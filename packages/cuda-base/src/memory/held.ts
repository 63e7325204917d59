/** Page-locked memory that a copy uses: dispose() frees it only after the last `_unhold`. */
export interface HeldMemory {
  /** @internal */
  _hold(): void
  /** @internal */
  _unhold(): void
}

const byArrayBuffer = new WeakMap<ArrayBufferLike, HeldMemory>()

/** Copies know the memory from now on by its ArrayBuffer, which keeps the object alive. */
export function noteHeld(buffer: ArrayBufferLike, memory: HeldMemory): void {
  byArrayBuffer.set(buffer, memory)
}

/** The page-locked memory that a typed array looks into, if any. */
export function heldBehind(array: ArrayBufferView): HeldMemory | undefined {
  return byArrayBuffer.get(array.buffer)
}
