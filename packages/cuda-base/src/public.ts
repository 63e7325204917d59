/** What `@shoal/driver` and `@shoal/runtime` both offer under the same names. */
export {
  DescriptorServer,
  type DescriptorServerOptions,
  DescriptorSocket,
  isSoftwareDevice,
  type LibraryReport,
  type PeerOptions,
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
  PeerRefusedError,
  ShoalError,
  StatusError,
  type StreamHandle,
  type StreamLike,
  type StructType,
  SymbolNotFoundError,
  SystemError,
  setStreamMode,
  streamMode,
  TimeoutError,
  type TypedArrayOf,
  VersionTooOldError,
  type WaitOptions,
} from '@shoal/types'
export { DeviceInUseError } from './context/deviceInUse.js'
export type { StatusText } from './errors.js'
export { elapsedMs } from './event/event.js'
export type { EventLike } from './event/eventLike.js'
export { type IpcEventHandle, ipcEventHandle } from './ipc/ipcEvent.js'
export { type IpcMemoryHandle, ipcMemoryHandle } from './ipc/ipcMemory.js'
export type { Resource } from './lifetime.js'
export type { CopySource, CopyTarget, QueueOptions } from './memory/deviceBuffer.js'
export type { ElementValue } from './memory/elements.js'
export type { HostArrayOf } from './memory/elementType.js'
export type { ManagedAdvice, ManagedAttachment, ManagedAttributes, ManagedPlace } from './memory/managedBuffer.js'
export type { PoolPointer, PoolUsage, ReusePolicy } from './memory/poolTypes.js'
export { type MulticastProperties, multicastGranularity } from './multicast/granularity.js'
export { type BindOptions, MulticastObject } from './multicast/multicastObject.js'
export type { KernelHandle } from './occupancy/occupancy.js'
export type { PointerInfo } from './pointer/pointerInfo.js'
export { type HandleKind, platformHandleKind } from './share/handleKinds.js'
export {
  DescriptorHandle,
  FabricHandle,
  type HandleContent,
  type HandleDescription,
  type HandleFacts,
  type ShareableHandle,
  type ShareableHandleOf,
  WindowsHandle,
} from './share/handles.js'
export { receiveHandle, sendHandle } from './share/handleTransfer.js'
export type { AccessGrant, MemoryAccess } from './vmm/access.js'
export { AddressRange, type ReserveOptions } from './vmm/addressRange.js'
export type { HostNode, MemoryLocation, MemoryPlace } from './vmm/location.js'
export { type MapOptions, MappedRange } from './vmm/mappedRange.js'
export type { AllocationOptions, AllocationProperties, Granularity } from './vmm/properties.js'
