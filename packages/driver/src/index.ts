export type { Resource } from '@shoal/cuda-base'
export { DeviceInUseError } from '@shoal/cuda-base'
export { isSoftwareDevice, type LibraryReport, probe, useSoftwareDevice } from '@shoal/ffi'
export {
  AbortedError,
  AddonLoadError,
  CudaVersion,
  type DeviceLike,
  DisposedError,
  type DType,
  FeatureNotSupportedError,
  LibraryNotFoundError,
  type LoadAttempt,
  type MemoryLike,
  type MemoryRange,
  ShoalError,
  StatusError,
  type StreamHandle,
  type StreamLike,
  SymbolNotFoundError,
  setStreamMode,
  streamMode,
  TimeoutError,
  type TypedArrayOf,
  VersionTooOldError,
} from '@shoal/types'
export { Context, type ContextLimit, type ContextSource } from './context.js'
export { Device, type PeerAttribute } from './device.js'
export { type DeviceAttribute, deviceAttributeNames } from './deviceAttributes.js'
export type { ElementValue } from './elements.js'
export { Event, type EventOptions, elapsedMs } from './event.js'
export type { ModuleImage } from './image.js'
export { driverVersion, initialize } from './init.js'
export type { JitOptions } from './jit.js'
export { Kernel, type KernelAttribute } from './kernel.js'
export type { Dimensions, LaunchConfig } from './launch.js'
export { type CopySource, type CopyTarget, DeviceBuffer, type QueueOptions } from './memory/deviceBuffer.js'
export { PinnedBuffer, type PinnedOptions } from './memory/pinnedBuffer.js'
export { Module } from './module.js'
export { type PointerInfo, pointerInfo } from './pointer.js'
export type { PreparedLaunch } from './preparedLaunch.js'
export type { KernelArgument, KernelArguments, KernelParameter, KernelSignature, PointerValue } from './signature.js'
export { Stream, type StreamOptions } from './stream.js'
export type { WaitOptions } from './wait.js'
