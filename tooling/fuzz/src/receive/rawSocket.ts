/** Bytes and descriptors as they come, past the frames of `DescriptorSocket`. */

interface Addon {
  /** The number of bytes, or minus errno. */
  sendSocket(descriptor: number, bytes: Uint8Array, descriptors: readonly number[]): number
}

// Its declarations are nobody's to use.
const { addon } = (await import('@shoal/ffi/internal')) as unknown as { addon(): Addon }

export function sendRaw(descriptor: number, bytes: Uint8Array, descriptors: readonly number[]): number {
  return addon().sendSocket(descriptor, bytes, descriptors)
}
