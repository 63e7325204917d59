export { defineArray, defineTuple } from './defineArray.js'
export { defineStruct, type StructOptions } from './defineStruct.js'
export {
  type CompoundInputOf,
  type CompoundValueOf,
  type ElementArrayOf,
  type ElementInputOf,
  type ElementLayout,
  type ElementType,
  elementLayout,
} from './elements.js'
export { type FieldCodec, fieldCodec, isCompoundType } from './fieldCodec.js'
export type {
  ArrayType,
  Complex,
  CompoundType,
  FieldArray,
  FieldInput,
  FieldType,
  FieldValue,
  StructField,
  StructFields,
  StructInput,
  StructType,
  StructValue,
  TupleInput,
  TupleType,
  TupleValue,
} from './types.js'
