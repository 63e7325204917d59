const bufferOfDataView = Object.getOwnPropertyDescriptor(DataView.prototype, 'buffer')?.get as () => ArrayBuffer

/**
 * Tests `ArrayBuffer.isView`, with a workaround for a bug of V8 13.6 (Node.js 24).
 *
 * Its optimizing compiler returns false for a `DataView` in hot callers, and so does `isDataView` of node:util. Remove
 * this when no supported Node.js has the bug (24.21 and its like).
 */
export function isView(value: unknown): value is ArrayBufferView {
  return ArrayBuffer.isView(value) || isDataView(value)
}

/**
 * Tests for the internal buffer of a `DataView`. `instanceof` comes first, because an exception takes a microsecond.
 */
function isDataView(value: unknown): boolean {
  try {
    return value instanceof DataView && Reflect.apply(bufferOfDataView, value, []) !== undefined
  } catch {
    // A proxy, or an object with only the prototype of a DataView.
    return false
  }
}
