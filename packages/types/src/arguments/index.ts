/** Argument checks for the packages of Shoal and for packages built on them. */
export { isArray, isForged, isInstance, isProxy, isRevoked, propertyOf } from '../anyValue.js'
export {
  loadedFrom,
  otherCopy,
  requireInstance,
} from './instances.js'
export {
  isPlainObject,
  longestTimeout,
  type OptionKeys,
  optionalOptions,
  optionalSignal,
  optionalTimeout,
  optionsChecker,
  requireOptions,
  requireWaitOptions,
  type WaitOptions,
  waitKeys,
} from './options.js'
export {
  optionalBoolean,
  outOfRange,
  requireAddress,
  requireArrayLike,
  requireBoolean,
  requireCount,
  requireFunction,
  requireInteger,
  requireKeyOf,
  requireList,
  requireNumber,
  requireOneOf,
  requireSynchronous,
  requireSynchronousFunction,
  requireText,
  wrongType,
} from './scalars.js'
export { usersWith } from './users.js'
