/** The call engine: what generated functions import. */

export {
  contextSlot,
  floatSlot,
  maximumArguments,
  maximumFloats,
  resultSlot,
  signedSlots32,
  signedSlots64,
  slots32,
  slots64,
} from '../addon/block.js'
export { type StagedCopy, stagedCopyFrom, stagedCopyTo } from '../waiting/stagedCopy.js'
export * from './arguments.js'
export {
  type BigNativeCall,
  type BigResult,
  bindBigCall,
  bindCall,
  bindStructCall,
  type CallArguments,
  type NativeCall,
  type NumberResult,
  type ResultKind,
  type StructNativeCall,
} from './bind.js'
export {
  type CallingConvention,
  type CallLayout,
  hostConvention,
  type LoweredParameter,
  lowerCall,
} from './lowering.js'
export { nestedCall } from './nestedCall.js'
export { RecordedCalls, recordCalls } from './recordedCalls.js'
