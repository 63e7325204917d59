export * from './arrays.js'
export * from './dtype.js'
export {
  decodeBF16,
  decodeF8E4M3,
  decodeF8E5M2,
  decodeF16,
  type EncodeOptions,
  encodeBF16,
  encodeF8E4M3,
  encodeF8E5M2,
  encodeF16,
  type NarrowFloat,
} from './narrowFloats.js'
