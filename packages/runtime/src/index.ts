export * from '@shoal/driver/public'
export type { Context } from '@shoal/driver/shared'
export { VersionTooNewError } from '@shoal/types'
export { currentDevice, type DeviceOption, setDevice, withDevice } from './device/currentDevice.js'
export {
  Device,
  type DeviceAttribute,
  type DeviceLimit,
  deviceAttributeNames,
  type PeerAttribute,
} from './device/device.js'
export type { DeviceProperties } from './device/deviceProperties.js'
export { lastError, peekLastError, statusText } from './errors.js'
export { Event, type EventOptions } from './event/event.js'
export { initialize, runtimeVersion } from './initialize.js'
export { openIpcEvent } from './ipc/ipcEvent.js'
export { IpcMemory } from './ipc/ipcMemory.js'
export { CachingPool, type CachingPoolOptions } from './memory/cachingPool.js'
export { type BorrowOptions, DeviceBuffer, type ViewOptions } from './memory/deviceBuffer.js'
export { GrowableBuffer, type GrowableBufferOptions } from './memory/growableBuffer.js'
export { ManagedBuffer, type ManagedOptions } from './memory/managedBuffer.js'
export { MemoryPool, type MemoryPoolOptions } from './memory/memoryPool.js'
export { PinnedBuffer, type PinnedOptions } from './memory/pinnedBuffer.js'
export { prepareCopies } from './memory/preparedCopies.js'
export { RegisteredBuffer, type RegisterOptions } from './memory/registeredBuffer.js'
export { availableSharedMemory, maxActiveBlocks, type OccupancyOptions } from './occupancy/occupancy.js'
export { pointerInfo } from './pointer/pointer.js'
export { Stream, type StreamOptions } from './stream/stream.js'
export { type GrowableOptions, GrowableRange } from './vmm/growableRange.js'
export { allocationGranularity, PhysicalMemory, type PlaceOption } from './vmm/physicalMemory.js'
