export {
  allocationGranularity,
  availableSharedMemory,
  type BlockSizeOptions,
  type BorrowOptions,
  CachingPool,
  type CachingPoolOptions,
  Context,
  type ContextLimit,
  Device,
  type DeviceAttribute,
  DeviceBuffer,
  type DeviceOrContext,
  deviceAttributeNames,
  driverVersion,
  Event,
  type EventOptions,
  GrowableBuffer,
  type GrowableBufferOptions,
  type GrowableOptions,
  GrowableRange,
  IpcMemory,
  ManagedBuffer,
  type ManagedOptions,
  MemoryPool,
  type MemoryPoolOptions,
  maxActiveBlocks,
  type OccupancyOptions,
  openIpcEvent,
  type PeerAttribute,
  PhysicalMemory,
  PinnedBuffer,
  type PinnedOptions,
  type PointerAttribute,
  type PointerAttributes,
  type PotentialBlockSize,
  pointerAttribute,
  pointerAttributes,
  pointerInfo,
  prepareCopies,
  type RangeAttribute,
  type RangeAttributes,
  type RangeLocationType,
  RegisteredBuffer,
  type RegisterOptions,
  rangeAttribute,
  rangeAttributes,
  Stream,
  type StreamOptions,
  setPointerAttribute,
  type ViewOptions,
} from '@shoal/cuda-base'
export * from '@shoal/cuda-base/public'
export { initialize, statusText } from './init.js'
export { Kernel, type KernelAttribute } from './launch/kernel.js'
export type {
  AccessPolicyWindow,
  KernelEvent,
  LaunchAttributes,
  RawLaunchAttribute,
} from './launch/launchAttributes.js'
export type { Dimensions, LaunchConfig } from './launch/launchConfig.js'
export type { PreparedLaunch } from './launch/preparedLaunch.js'
export type {
  KernelArgument,
  KernelArguments,
  KernelParameter,
  KernelSignature,
  PointerValue,
} from './launch/signature.js'
export type { ModuleImage } from './module/image.js'
export type { JitOptions } from './module/jit.js'
export { Module } from './module/module.js'
