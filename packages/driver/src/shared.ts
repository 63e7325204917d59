/** The parts of this package that `@shoal/runtime` uses. Programs use the other entries. */

export * from './basics.js'
export type { Dimensions } from './core/attributes/dimensions.js'
export type {
  AccessPolicyWindow,
  KernelEvent,
  LaunchAttributes,
  RawLaunchAttribute,
} from './core/attributes/launchAttributes.js'
export * from './core/calls/cudaLibrary.js'
export type { PairedCalls } from './core/calls/driverCalls.gen.js'
export { driverLibrary } from './core/calls/driverLibrary.js'
export * from './core/context/capturing.js'
export * from './core/context/context.js'
export * from './core/context/deviceInUse.js'
export * from './core/context/eventLike.js'
export {
  type CacheConfig,
  type ContextFlags,
  contextFlagKeys,
  decodeContextFlags,
  encodeContextFlags,
} from './core/context/flags.js'
export type { ContextLimit } from './core/context/limits.js'
export * from './core/context/releases.js'
export * from './core/device/device.js'
export { DeviceList } from './core/device/deviceList.js'
export * from './core/device/deviceUuid.js'
export * from './core/errors.js'
export * from './core/event/event.js'
export * from './core/lifetime.js'
export * from './core/native.js'
export * from './core/ranges/arrayBytes.js'
export { pinnedOwnerOf } from './core/ranges/pinnedRegistry.js'
export * from './core/releasing.js'
export * from './core/start.js'
export type { StreamAttributes, StreamAttributeValues } from './core/stream/attributes.js'
export * from './core/stream/memoryOperations.js'
export * from './core/stream/stream.js'
export * from './core/u64Halves.js'
export { queueHostCopy, queueUnobservedCopy } from './core/waiting/copyWait.js'
export * from './core/waiting/heldOnceAsked.js'
export type { StreamQueue } from './core/waiting/unmarkedWork.js'
export * from './memory/buffers/allocation.js'
export type { MemorySource } from './memory/buffers/caching/blockCache.js'
export * from './memory/buffers/caching/cachingPool.js'
export { copyInSlices } from './memory/buffers/copyInSlices.js'
export * from './memory/buffers/deviceBuffer.js'
export type { CopySource, CopyTarget, QueueOptions } from './memory/buffers/deviceTransfers.js'
export * from './memory/buffers/elements.js'
export * from './memory/buffers/elementType.js'
export * from './memory/buffers/fill.js'
export * from './memory/buffers/growableBuffer.js'
export * from './memory/buffers/hostArrays.js'
export * from './memory/buffers/hostCopy.js'
export * from './memory/buffers/managedBuffer.js'
export * from './memory/buffers/memoryPool.js'
export * from './memory/buffers/newMemory.js'
export { refuseOverlap, requireApart, requireRowsApart } from './memory/buffers/overlap.js'
export * from './memory/buffers/pinnedBuffer.js'
export * from './memory/buffers/poolTypes.js'
export * from './memory/buffers/preparedCopies.js'
export { isReachedByCopies, reachNeed, requireReachable } from './memory/buffers/reach.js'
export * from './memory/buffers/registeredBuffer.js'
export { StagingPool } from './memory/buffers/staging.js'
export type { StreamAllocator } from './memory/buffers/streamAllocator.js'
export * from './memory/buffers/typed.js'
export { DeviceFactories } from './memory/deviceFactories.js'
export * from './memory/handles/exchange.js'
export * from './memory/handles/handleKinds.js'
export * from './memory/handles/handles.js'
export * from './memory/handles/handleTransfer.js'
export { decodeHandle, encodeHandle } from './memory/ipc/handleBytes.js'
export * from './memory/ipc/ipcEvent.js'
export * from './memory/ipc/ipcMemory.js'
export * from './memory/multicast/granularity.js'
export * from './memory/multicast/multicastObject.js'
export * from './memory/pointer/pointerAttributes.js'
export * from './memory/pointer/pointerInfo.js'
export * from './memory/pointer/rangeAttributes.js'
export * from './memory/vmm/access.js'
export * from './memory/vmm/addressRange.js'
export * from './memory/vmm/growableRange.js'
export * from './memory/vmm/location.js'
export * from './memory/vmm/mappedRange.js'
export * from './memory/vmm/physicalMemory.js'
export * from './memory/vmm/properties.js'
export * from './work/launch/kernel.js'
export type { LaunchConfig } from './work/launch/launchConfig.js'
export { type ParameterInfo, parameterInfo } from './work/launch/parameters.js'
export type { PreparedLaunch } from './work/launch/preparedLaunch.js'
export {
  isReference,
  type KernelArgument,
  type KernelArguments,
  type KernelObject,
  type KernelObjectType,
  type KernelParameter,
  type KernelSignature,
  type PointerValue,
} from './work/launch/signature.js'
export * from './work/module/image.js'
export * from './work/module/jit.js'
export * from './work/occupancy/occupancy.js'
