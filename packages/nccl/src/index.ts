export { Communicator } from './communicator/communicator.js'
export { CommunicatorOperations } from './communicator/communicatorOperations.js'
export { type CommunicatorConfig, type CtaPolicy, communicatorConfigFields } from './communicator/config.js'
export type {
  DeriveOptions,
  GrowOptions,
  InitOptions,
  InitRankOptions,
  JoinGrownOptions,
  ShrinkOptions,
  SplitOptions,
} from './communicator/options.js'
export type {
  CommunicatorMemoryStatistics,
  CommunicatorProperties,
  GpuInitiatedNetwork,
} from './communicator/properties.js'
export { UniqueId } from './communicator/uniqueId.js'
export {
  DeviceCommunicator,
  type DeviceCommunicatorOptions,
  type TeamRequirement,
} from './deviceApi/deviceCommunicator.js'
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
} from './deviceApi/deviceResources.js'
export { Team, type TeamName, type TeamShape } from './deviceApi/team.js'
export { ncclStatusText } from './errors.js'
export { group, groupEnd, groupStart } from './group/group.js'
export { groupOffThread } from './group/groupOffThread.js'
export { GroupStateError } from './group/groupState.js'
export { type GroupEstimate, simulateGroup } from './group/simulateGroup.js'
export {
  type AbortReason,
  CommunicatorAbortedError,
  type CommunicatorAbortedErrorOptions,
  type CommunicatorIdentity,
  CommunicatorStateError,
  type CommunicatorStateErrorOptions,
  type InvalidState,
} from './lifetime/communicatorErrors.js'
export type { CommunicatorWaitOptions } from './lifetime/waitOptions.js'
export { type MemorySize, NcclMemory } from './memory/ncclMemory.js'
export { Registration } from './memory/registration.js'
export type {
  AwaitedSignal,
  PutSignalOptions,
  SignalChannel,
  SignalOptions,
  WaitSignalOptions,
} from './oneSided/oneSided.js'
export { type PeerMemory, Window, type WindowOptions } from './oneSided/window.js'
export type { CollectiveOptions, ReductionOptions, RootOptions } from './operations/options.js'
export type { PeerOptions } from './operations/pointToPoint.js'
export { PreparedCollective, PreparedGroup, prepareGroup } from './operations/prepared.js'
export type { ReduceOp } from './operations/reduceOp.js'
export { PreMulSum, type PreMulSumOptions } from './operations/reductionOps.js'
export type { OwnBytes } from './ownBytes.js'
export { NcclParameter, type ParameterType } from './parameters.js'
export { ncclHeaderVersion, ncclSupports, ncclVersion } from './version.js'
