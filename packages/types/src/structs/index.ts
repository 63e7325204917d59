export { defineStruct, type StructOptions } from './defineStruct.js'
export { type FieldCodec, fieldCodec } from './fieldCodec.js'
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
