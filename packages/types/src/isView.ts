import { isDataView } from 'node:util/types'

/**
 * `ArrayBuffer.isView`, which the optimizing compiler of Node.js 24 (V8 13.6) answers wrongly for a `DataView` once its caller is
 * hot. It can go when 24.21 and its like are not supported any more.
 */
export function isView(value: unknown): value is ArrayBufferView {
  return ArrayBuffer.isView(value) || isDataView(value)
}
