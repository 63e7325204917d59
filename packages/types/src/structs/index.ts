export { defineStruct, type StructOptions } from './defineStruct.js'
export {
  type ElementArrayOf,
  type ElementInputOf,
  type ElementLayout,
  type ElementType,
  elementLayout,
} from './elements.js'
export { type FieldCodec, fieldCodec, isStructType } from './fieldCodec.js'
export type {
  Complex,
  FieldArray,
  FieldInput,
  FieldType,
  FieldValue,
  StructField,
  StructFields,
  StructInput,
  StructType,
  StructValue,
} from './types.js'
