/** The getters of the typed array class, which objects cannot override. */
const prototype = Object.getPrototypeOf(Uint8Array.prototype) as object
const getter = <T>(name: string) =>
  Object.getOwnPropertyDescriptor(prototype, name)?.get as (this: ArrayBufferView) => T
const getByteLength = getter<number>('byteLength')
const getByteOffset = getter<number>('byteOffset')
const getBuffer = getter<ArrayBufferLike>('buffer')

/**
 * Returns a typed array's real size in bytes. Uses the getters of the class: a subclass, an own property or a proxy
 * could return a wrong size, and C would then copy memory that does not exist. @throws TypeError for a proxy
 */
export function byteLengthOf(array: ArrayBufferView): number {
  return getByteLength.call(array)
}

/** Returns a typed array's real offset in its `ArrayBuffer`. */
export function byteOffsetOf(array: ArrayBufferView): number {
  return getByteOffset.call(array)
}

/** Returns a typed array's real `ArrayBuffer`. */
export function bufferOf(array: ArrayBufferView): ArrayBufferLike {
  return getBuffer.call(array)
}

/** Returns all bytes of a typed array. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(getBuffer.call(array), getByteOffset.call(array), getByteLength.call(array))
}
