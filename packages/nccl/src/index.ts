export type { CollectiveOptions, ReduceOp, ReductionOptions, RootOptions } from './collectives.js'
export {
  Communicator,
  type DeriveOptions,
  type GrowOptions,
  type InitOptions,
  type InitRankOptions,
  type JoinGrownOptions,
  type ShrinkOptions,
  type SplitOptions,
} from './communicator.js'
export {
  type AbortReason,
  CommunicatorAbortedError,
  type CommunicatorAbortedErrorOptions,
  type CommunicatorIdentity,
  CommunicatorStateError,
  type CommunicatorStateErrorOptions,
} from './communicatorErrors.js'
export { type CommunicatorConfig, type CtaPolicy, communicatorConfigFields } from './config.js'
export { DeviceCommunicator, type DeviceCommunicatorOptions, type TeamRequirement } from './deviceCommunicator.js'
export {
  type BufferResource,
  type DeviceResource,
  type DeviceResourceHandle,
  type DeviceResourceNeeds,
  deviceResourceNeeds,
  type GinBarrierResource,
  type GinInboxResource,
  type GinOutboxResource,
  type LlA2AResource,
  type LsaBarrierResource,
  llA2ASlots,
} from './deviceResources.js'
export { type GroupEstimate, group, groupAsync, simulateGroup } from './group.js'
export { type MemorySize, NcclMemory } from './memory.js'
export type { AwaitedSignal, PutSignalOptions, SignalChannel, SignalOptions } from './oneSided.js'
export { CommunicatorOperations } from './operations.js'
export { NcclParameter, type ParameterType } from './parameters.js'
export type { PeerOptions } from './pointToPoint.js'
export type {
  CommunicatorMemoryStatistics,
  CommunicatorProperties,
  GpuInitiatedNetwork,
} from './properties.js'
export { PreMulSum, type PreMulSumOptions } from './reductionOps.js'
export { Registration } from './registration.js'
export { Team, type TeamName, type TeamShape } from './team.js'
export { UniqueId } from './uniqueId.js'
export { ncclHeaderVersion, ncclSupports, ncclVersion } from './version.js'
export type { CommunicatorWaitOptions } from './watchdog.js'
export { type PeerMemory, Window, type WindowOptions } from './window.js'
