export {
  type AccessGrant,
  AddressRange,
  type AllocationOptions,
  type AllocationProperties,
  type BindOptions,
  type Context,
  DescriptorHandle,
  DeviceInUseError,
  type ElementValue,
  type EventLike,
  FabricHandle,
  type Granularity,
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
  type PoolPointer,
  type PoolUsage,
  platformHandleKind,
  type ReserveOptions,
  type Resource,
  type ReusePolicy,
  receiveHandle,
  type ShareableHandle,
  type ShareableHandleOf,
  sendHandle,
  type ViewOptions,
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
  VersionTooNewError,
  VersionTooOldError,
} from '@shoal/types'
export { currentDevice, setDevice, withDevice } from './currentDevice.js'
export { Device } from './device.js'
export { type DeviceAttribute, type DeviceLimit, deviceAttributeNames, type PeerAttribute } from './deviceAttributes.js'
export type { DeviceProperties } from './deviceProperties.js'
export { lastError, peekLastError } from './errors.js'
export { Event, type EventOptions, elapsedMs } from './event.js'
export {
  type CopySource,
  type CopyTarget,
  DeviceMemory,
  type DeviceOption,
  type QueueOptions,
} from './memory/deviceMemory.js'
export {
  type ManagedAdvice,
  type ManagedAttachment,
  type ManagedAttributes,
  ManagedMemory,
  type ManagedOptions,
  type ManagedPlace,
} from './memory/managedMemory.js'
export { MemoryPool, type MemoryPoolOptions } from './memory/memoryPool.js'
export { PinnedMemory, type PinnedOptions } from './memory/pinnedMemory.js'
export { type PointerInfo, pointerInfo } from './memory/pointer.js'
export { initialize, runtimeVersion } from './start.js'
export { Stream, type StreamOptions } from './stream.js'
export { type GrowableOptions, GrowableRange } from './vmm/growableRange.js'
export { allocationGranularity, PhysicalMemory, type PlaceOption } from './vmm/physicalMemory.js'
