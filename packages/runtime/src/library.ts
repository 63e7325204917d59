/** Libraries of the runtime, which is how it loads code, and launches of their kernels. */
export type {
  AccessPolicyWindow,
  CachePreference,
  Dimensions,
  JitOptions,
  Kernel,
  KernelArgument,
  KernelArguments,
  KernelAttribute,
  KernelEvent,
  KernelParameter,
  KernelSignature,
  LaunchAttributes,
  LaunchConfig,
  ModuleImage,
  ParameterInfo,
  PointerValue,
  PreparedLaunch,
  RawLaunchAttribute,
} from '@shoal/cuda-base'
export { moduleLoadingMode } from '@shoal/cuda-base/library'
export { Library, type LibraryOptions } from './library/library.js'
