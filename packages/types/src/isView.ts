const bufferOfDataView = Object.getOwnPropertyDescriptor(DataView.prototype, 'buffer')?.get as () => ArrayBuffer

/**
 * `ArrayBuffer.isView`, which the optimizing compiler of Node.js 24 (V8 13.6) answers wrongly for a `DataView` once its
 * caller is hot, and with it `isDataView` of node:util. It can go when 24.21 and its like are not supported any more.
 */
export function isView(value: unknown): value is ArrayBufferView {
  return ArrayBuffer.isView(value) || isDataView(value)
}

/** Whether it has what a `DataView` alone has; the prototype is asked first, as an exception takes a microsecond. */
function isDataView(value: unknown): boolean {
  try {
    return value instanceof DataView && Reflect.apply(bufferOfDataView, value, []) !== undefined
  } catch {
    // A proxy, or an object that has nothing of a DataView but its prototype.
    return false
  }
}
