/** What the safe CUDA packages share. Programs use `@shoal/driver` or `@shoal/runtime`. */
export type { Dimensions } from './attributes/dimensions.js'
export type {
  AccessPolicyWindow,
  KernelEvent,
  LaunchAttributes,
  RawLaunchAttribute,
} from './attributes/launchAttributes.js'
export * from './basics.js'
export * from './calls/cudaLibrary.js'
export type { PairedCalls } from './calls/driverCalls.gen.js'
export { driverLibrary } from './calls/driverLibrary.js'
export * from './context/capturing.js'
export * from './context/context.js'
export * from './context/deviceInUse.js'
export * from './context/eventLike.js'
export {
  type CacheConfig,
  type ContextFlags,
  contextFlagKeys,
  decodeContextFlags,
  encodeContextFlags,
} from './context/flags.js'
export type { ContextLimit } from './context/limits.js'
export * from './context/releases.js'
export * from './device/device.js'
export { DeviceFactories } from './device/deviceFactories.js'
export { DeviceList } from './device/deviceList.js'
export * from './errors.js'
export * from './event/event.js'
export { decodeHandle, encodeHandle } from './ipc/handleBytes.js'
export * from './ipc/ipcEvent.js'
export * from './ipc/ipcMemory.js'
export * from './launch/kernel.js'
export type { LaunchConfig } from './launch/launchConfig.js'
export { type ParameterInfo, parameterInfo } from './launch/parameters.js'
export type { PreparedLaunch } from './launch/preparedLaunch.js'
export {
  isReference,
  type KernelArgument,
  type KernelArguments,
  type KernelObject,
  type KernelObjectType,
  type KernelParameter,
  type KernelSignature,
  type PointerValue,
} from './launch/signature.js'
export * from './lifetime.js'
export * from './memory/allocation.js'
export * from './memory/arrayBytes.js'
export type { MemorySource } from './memory/caching/blockCache.js'
export * from './memory/caching/cachingPool.js'
export { copyInSlices } from './memory/copyInSlices.js'
export * from './memory/deviceBuffer.js'
export type { CopySource, CopyTarget, QueueOptions } from './memory/deviceTransfers.js'
export * from './memory/elements.js'
export * from './memory/elementType.js'
export * from './memory/fill.js'
export * from './memory/growableBuffer.js'
export * from './memory/hostArrays.js'
export * from './memory/hostCopy.js'
export * from './memory/managedBuffer.js'
export * from './memory/memoryPool.js'
export * from './memory/newMemory.js'
export { refuseOverlap, requireApart, requireRowsApart } from './memory/overlap.js'
export * from './memory/pinnedBuffer.js'
export { pinnedOwnerOf } from './memory/pinnedRegistry.js'
export * from './memory/poolTypes.js'
export * from './memory/preparedCopies.js'
export { isReachedByCopies, reachNeed, requireReachable } from './memory/reach.js'
export * from './memory/registeredBuffer.js'
export { StagingPool } from './memory/staging.js'
export type { StreamAllocator } from './memory/streamAllocator.js'
export * from './memory/typed.js'
export * from './module/image.js'
export * from './module/jit.js'
export * from './multicast/granularity.js'
export * from './multicast/multicastObject.js'
export * from './native.js'
export * from './occupancy/occupancy.js'
export * from './pointer/pointerAttributes.js'
export * from './pointer/pointerInfo.js'
export * from './pointer/rangeAttributes.js'
export * from './releasing.js'
export * from './share/deviceUuid.js'
export * from './share/exchange.js'
export * from './share/handleKinds.js'
export * from './share/handles.js'
export * from './share/handleTransfer.js'
export * from './start.js'
export type { StreamAttributes, StreamAttributeValues } from './stream/attributes.js'
export * from './stream/memoryOperations.js'
export * from './stream/stream.js'
export * from './u64Halves.js'
export * from './vmm/access.js'
export * from './vmm/addressRange.js'
export * from './vmm/growableRange.js'
export * from './vmm/location.js'
export * from './vmm/mappedRange.js'
export * from './vmm/physicalMemory.js'
export * from './vmm/properties.js'
export { queueHostCopy, queueUnobservedCopy } from './waiting/copyWait.js'
export * from './waiting/heldOnceAsked.js'
export type { StreamQueue } from './waiting/unmarkedWork.js'
