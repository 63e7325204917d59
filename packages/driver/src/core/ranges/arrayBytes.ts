/** What a typed array really has, whatever it says. */
const prototype = Object.getPrototypeOf(Uint8Array.prototype) as object
const getter = <T>(name: string) =>
  Object.getOwnPropertyDescriptor(prototype, name)?.get as (this: ArrayBufferView) => T
const getByteLength = getter<number>('byteLength')
const getByteOffset = getter<number>('byteOffset')
const getBuffer = getter<ArrayBufferLike>('buffer')

/**
 * The bytes a typed array really has. The getters of its class are asked, not the object: a subclass, a property of its
 * own or a proxy could say anything, and what C is told to copy must be there. @throws TypeError for a proxy
 */
export function byteLengthOf(array: ArrayBufferView): number {
  return getByteLength.call(array)
}

/** Where a typed array begins in its `ArrayBuffer`, asked in the same way. */
export function byteOffsetOf(array: ArrayBufferView): number {
  return getByteOffset.call(array)
}

/** The `ArrayBuffer` behind a typed array, asked in the same way. */
export function bufferOf(array: ArrayBufferView): ArrayBufferLike {
  return getBuffer.call(array)
}

/** All bytes of a typed array. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(getBuffer.call(array), getByteOffset.call(array), getByteLength.call(array))
}
