/** Sends bytes and descriptors unchanged, without the frames of `DescriptorSocket`. */

interface Addon {
  /** Returns the number of bytes sent, or a negative errno. */
  sendSocket(descriptor: number, bytes: Uint8Array, descriptors: readonly number[]): number
}

// The package publishes no declarations for its internal entry point.
const { addon } = (await import('@shoal/ffi/internal')) as unknown as { addon(): Addon }

export function sendRaw(descriptor: number, bytes: Uint8Array, descriptors: readonly number[]): number {
  return addon().sendSocket(descriptor, bytes, descriptors)
}
