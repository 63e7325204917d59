export {
  type AccessGrant,
  AddressRange,
  type AllocationOptions,
  type AllocationProperties,
  type BindOptions,
  type Context,
  type CopySource,
  type CopyTarget,
  DescriptorHandle,
  DeviceInUseError,
  type ElementValue,
  type EventLike,
  elapsedMs,
  FabricHandle,
  type Granularity,
  type HandleContent,
  type HandleDescription,
  type HandleFacts,
  type HandleKind,
  type HostArrayOf,
  type HostNode,
  type KernelHandle,
  type ManagedAdvice,
  type ManagedAttachment,
  type ManagedAttributes,
  type ManagedPlace,
  type MapOptions,
  MappedRange,
  type MemoryAccess,
  type MemoryLocation,
  type MemoryPlace,
  MulticastObject,
  type MulticastProperties,
  multicastGranularity,
  type PointerInfo,
  type PoolPointer,
  type PoolUsage,
  platformHandleKind,
  type QueueOptions,
  type ReserveOptions,
  type Resource,
  type ReusePolicy,
  receiveHandle,
  type ShareableHandle,
  type ShareableHandleOf,
  sendHandle,
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
  defineStruct,
  type ElementType,
  FeatureNotSupportedError,
  LibraryNotFoundError,
  type LoadAttempt,
  type MemoryLike,
  type MemoryRange,
  ShoalError,
  StatusError,
  type StreamHandle,
  type StreamLike,
  type StructType,
  SymbolNotFoundError,
  setStreamMode,
  streamMode,
  TimeoutError,
  type TypedArrayOf,
  VersionTooNewError,
  VersionTooOldError,
  type WaitOptions,
} from '@shoal/types'
export { currentDevice, type DeviceOption, setDevice, withDevice } from './device/currentDevice.js'
export {
  Device,
  type DeviceAttribute,
  type DeviceLimit,
  deviceAttributeNames,
  type PeerAttribute,
} from './device/device.js'
export type { DeviceProperties } from './device/deviceProperties.js'
export { lastError, peekLastError } from './errors.js'
export { Event, type EventOptions } from './event/event.js'
export { initialize, runtimeVersion } from './initialize.js'
export { type BorrowOptions, DeviceBuffer, type ViewOptions } from './memory/deviceBuffer.js'
export { ManagedBuffer, type ManagedOptions } from './memory/managedBuffer.js'
export { MemoryPool, type MemoryPoolOptions } from './memory/memoryPool.js'
export { PinnedBuffer, type PinnedOptions } from './memory/pinnedBuffer.js'
export { availableSharedMemory, maxActiveBlocks, type OccupancyOptions } from './occupancy/occupancy.js'
export { pointerInfo } from './pointer/pointer.js'
export { Stream, type StreamOptions } from './stream/stream.js'
export { type GrowableOptions, GrowableRange } from './vmm/growableRange.js'
export { allocationGranularity, PhysicalMemory, type PlaceOption } from './vmm/physicalMemory.js'
