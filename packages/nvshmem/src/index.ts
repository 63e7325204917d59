/** Safe NVSHMEM: symmetric memory, one-sided transfers, atomics, signals, teams and collectives. */
export type { WaitOptions } from '@shoal/types'
export { type ArithmeticDType, type AtomicDType, AtomicOperations, type BitwiseDType } from './atomics/atomics.js'
export type {
  CollectiveOptions,
  CountOptions,
  RootOptions,
  StreamCollectiveOptions,
} from './collectives/dataCollectives.js'
export type { ReduceOp, ReductionOptions } from './collectives/reductions.js'
export type { OnStreamOptions } from './collectives/synchronization.js'
export { DeviceCode, type LibraryLike, type ModuleLike } from './deviceCode/deviceCode.js'
export type { CollectiveLaunchOptions, Dimensions, KernelLike, LaunchParameter } from './deviceCode/launch.js'
export { type NvshmemStatusText, nvshmemStatusText, SessionExistsError, SessionStuckError } from './errors.js'
export type { HeapOptions } from './heap/allocation.js'
export { PeerMemory } from './heap/peerMemory.js'
export { type CopySource, SymmetricBuffer } from './heap/symmetricBuffer.js'
export type { LocalMemory, LocalOperand, StreamOperand } from './operands.js'
export { Registration } from './registration.js'
export type { ElementOptions, StreamElementOptions, WaitingElementOptions } from './rma/element.js'
export type { PutSignalOptions } from './rma/putSignal.js'
export type { StreamStridedOptions, StridedOptions, WaitingStridedOptions } from './rma/strided.js'
export type { StreamTransferOptions, TransferOptions, WaitingTransferOptions } from './rma/types.js'
export type {
  EnvironmentInitOptions,
  InitOptions,
  Launcher,
  LauncherInitOptions,
  ThreadLevel,
  UniqueIdInitOptions,
} from './session/initOptions.js'
export { Session } from './session/session.js'
export { type NvshmemStatus, nvshmemStatus } from './session/status.js'
export { UniqueId } from './session/uniqueId.js'
export { nvshmemHeaderVersion, nvshmemName, nvshmemVersion, openShmemVersion } from './session/version.js'
export type { Comparison, SignalOp } from './signals/operators.js'
export {
  type SignalIndex,
  type SignalOptions,
  Signals,
  type WaitableDType,
  type WaitUntilAllOptions,
  type WaitUntilAllVectorOptions,
  type WaitUntilOptions,
} from './signals/signals.js'
export type { CreateTeamOptions, Split2dOptions, SplitStridedOptions, TeamConfig } from './teams/split.js'
export { type Split2d, Team } from './teams/team.js'
export type { SessionTeam } from './teams/teamParts.js'
export type { ElementOf, ElementValue } from './values.js'
