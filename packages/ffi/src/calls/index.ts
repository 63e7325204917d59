/** The call engine: what generated functions import. */
export * from './arguments.js'
export { type BigNativeCall, bindBigCall, bindCall, type NativeCall, type ResultKind } from './bind.js'
export { maximumArguments, signedSlots32, signedSlots64, slots32, slots64 } from './block.js'
export {
  type CallingConvention,
  type CallLayout,
  hostConvention,
  type LoweredParameter,
  lowerCall,
} from './lowering.js'
export { nestedCall } from './nestedCall.js'
