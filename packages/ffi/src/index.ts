export type { CallResult } from './addon/contract.js'
export type { CallEngine } from './addon/load.js'
export { callInContext, enterContext, leaveContext, type StatusText, setContextFunctions } from './context.js'
export { closeDescriptor } from './descriptors/closeDescriptor.js'
export {
  type DescriptorMessage,
  DescriptorServer,
  type DescriptorServerOptions,
  DescriptorSocket,
  type ReceivedMessage,
} from './descriptors/descriptorSocket.js'
export { isHungUp } from './descriptors/isHungUp.js'
export type { PeerOptions } from './descriptors/peers.js'
export type { LoadedLibrary } from './library/discovery.js'
export type { ForeignFunction } from './library/foreign.js'
export { definedLibraries, defineLibrary, type LibrarySpec, NativeLibrary } from './library/nativeLibrary.js'
export type { LibraryPlaces } from './library/places.js'
export { addressOf, type HostView, type HostViewReach, hostView, readCString, readMemory } from './memory/hostMemory.js'
export { NativeMemory } from './memory/nativeMemory.js'
export { type AddonReport, type LibraryReport, probe, probeAddon } from './probe.js'
export { isSoftwareDevice, type SoftwareDeviceOptions, useSoftwareDevice } from './software.js'
export {
  defineStructCodec,
  type PrimitiveKind,
  type StructCodec,
  type StructField,
  type StructLayout,
  type StructMemory,
  type StructValue,
} from './structs.js'
export { onAbort } from './waiting/abortSignals.js'
export type { BackgroundWork } from './waiting/hold.js'
export { createHostCallback, type HostCallback } from './waiting/hostCallback.js'
export { createLane, Lane, type OffThreadOptions, offThread } from './waiting/offThread.js'
export { type CompletionQuery, waitForEvent } from './waiting/waitForEvent.js'
export type { WaitOptions } from './waiting/waitOptions.js'
