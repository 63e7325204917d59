/** Libraries, which contain the runtime's device code, and launches of their kernels. */

export { moduleLoadingMode } from '@shoal/driver/library'
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
} from '@shoal/driver/shared'
export { Library, type LibraryOptions } from './library/library.js'
