import { addon } from '../addon/load.js'

export interface HostView {
  readonly buffer: ArrayBuffer
  /** Makes the buffer zero bytes long: reads and writes after that do not reach the memory. Call it before the memory is freed. */
  detach(): void
}

/**
 * An `ArrayBuffer` over memory that somebody else owns, such as pinned memory. Nothing is copied; the owner keeps the
 * memory alive until `detach()`.
 * @throws Error with code `SHOAL_NO_EXTERNAL_BUFFERS` in engines that forbid buffers over native memory.
 */
export function hostView(address: bigint, byteLength: number): HostView {
  if (typeof address !== 'bigint' || address === 0n) throw new TypeError('hostView: address must be a non-zero bigint')
  if (!Number.isSafeInteger(byteLength) || byteLength < 0) {
    throw new RangeError(`hostView: byteLength must be a non-negative integer, got ${String(byteLength)}`)
  }
  const buffer = addon().view(address, byteLength)
  return {
    buffer,
    detach() {
      addon().detach(buffer)
    },
  }
}

/**
 * Address of the first byte of a view. It stays valid while the view is reachable and its buffer is neither detached nor
 * resized.
 */
export function addressOf(view: ArrayBufferView | ArrayBufferLike): bigint {
  return addon().addressOf(view)
}

/** The NUL-terminated UTF-8 text at an address; `null` for a null pointer. */
export function readCString(address: bigint): string | null {
  return addon().readCString(address)
}

/** A copy of `byteLength` bytes of native memory. The address must be readable host memory. */
export function readMemory(address: bigint, byteLength: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(byteLength)
  if (byteLength > 0) addon().copyOut(address, bytes)
  return bytes
}
