export {
  type AccessGrant,
  AddressRange,
  type AllocationOptions,
  type AllocationProperties,
  allocationGranularity,
  type BindOptions,
  DescriptorHandle,
  DeviceInUseError,
  type ElementValue,
  type EventLike,
  FabricHandle,
  type Granularity,
  type GrowableOptions,
  GrowableRange,
  type HandleContent,
  type HandleDescription,
  type HandleFacts,
  type HandleKind,
  type HostNode,
  type MapOptions,
  MappedRange,
  type MemoryAccess,
  type MemoryLocation,
  type MemoryPlace,
  MulticastObject,
  type MulticastProperties,
  multicastGranularity,
  PhysicalMemory,
  platformHandleKind,
  type ReserveOptions,
  type Resource,
  receiveHandle,
  type ShareableHandle,
  type ShareableHandleOf,
  sendHandle,
  type WaitOptions,
  WindowsHandle,
} from '@shoal/cuda-base'
export {
  DescriptorServer,
  DescriptorSocket,
  isSoftwareDevice,
  type LibraryReport,
  probe,
  useSoftwareDevice,
} from '@shoal/ffi'
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
export { Event, type EventOptions, elapsedMs } from './event.js'
export type { ModuleImage } from './image.js'
export { driverVersion, initialize } from './init.js'
export type { JitOptions } from './jit.js'
export { Kernel, type KernelAttribute } from './kernel.js'
export type { Dimensions, LaunchConfig } from './launch.js'
export {
  type CopySource,
  type CopyTarget,
  DeviceBuffer,
  type QueueOptions,
  type ViewOptions,
} from './memory/deviceBuffer.js'
export { GrowableBuffer, type GrowableBufferOptions } from './memory/growableBuffer.js'
export {
  MemoryPool,
  type MemoryPoolOptions,
  type PoolPointer,
  type PoolUsage,
  type ReusePolicy,
} from './memory/memoryPool.js'
export { PinnedBuffer, type PinnedOptions } from './memory/pinnedBuffer.js'
export { Module } from './module.js'
export {
  type PointerAttribute,
  type PointerAttributes,
  type PointerInfo,
  pointerAttribute,
  pointerAttributes,
  pointerInfo,
  type RangeAttribute,
  type RangeAttributes,
  type RangeLocationType,
  rangeAttribute,
  rangeAttributes,
  setPointerAttribute,
} from './pointer.js'
export type { PreparedLaunch } from './preparedLaunch.js'
export { type IpcEventHandle, ipcEventHandle, openIpcEvent } from './share/ipcEvent.js'
export { IpcMemory, type IpcMemoryHandle, ipcMemoryHandle } from './share/ipcMemory.js'
export type { KernelArgument, KernelArguments, KernelParameter, KernelSignature, PointerValue } from './signature.js'
export { Stream, type StreamOptions } from './stream.js'
