import {
  initialNcclCommProperties,
  type ncclComm_t,
  ncclCommMemStat_t,
  ncclCommMemStats,
  ncclCommQueryProperties,
  ncclGinType_t,
  readNcclCommProperties,
} from '@shoal/nccl-sys'
import { withJson } from '@shoal/types'
import { checkNccl } from '../errors.js'

/** How GPUs start network transfers themselves (`ncclGinType_t`). */
export type GpuInitiatedNetwork = 'none' | 'proxy' | 'gdaki' | 'gpi'

/**
 * Properties and features of a communicator (`ncclCommProperties`). Fields that the loaded NCCL does not report are
 * undefined.
 */
export interface CommunicatorProperties {
  /** Rank of the communicator, from 0. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of the device. */
  readonly deviceOrdinal: number
  /** Index of the device in NVML's order, which `CUDA_VISIBLE_DEVICES` does not change. */
  readonly nvmlDeviceIndex: number | undefined
  /** Whether kernels can communicate (`createDeviceCommunicator`). */
  readonly deviceApiSupport: boolean | undefined
  /** Whether kernels can use multicast addresses. */
  readonly multimemSupport: boolean | undefined
  /** How kernels start transfers to all ranks over the network. */
  readonly ginType: GpuInitiatedNetwork | undefined
  /** Number of groups of ranks that access each other's memory by load and store. */
  readonly lsaTeamCount: number | undefined
  /** Whether `putSignal` and similar operations work. */
  readonly hostRmaSupport: boolean | undefined
  /** Like `ginType`, for the ranks of a rail, which have the same position on their machines. */
  readonly railedGinType: GpuInitiatedNetwork | undefined
}

/** GPU memory of a communicator, in bytes (`ncclCommMemStats`). */
export interface CommunicatorMemoryStatistics {
  /** Bytes that `suspend()` frees. */
  readonly suspendable: bigint
  /** Whether these bytes are currently freed. */
  readonly isSuspended: boolean
  /** Bytes that stay for the life of the communicator. */
  readonly persistent: bigint
  /** Sum of both. */
  readonly total: bigint
}

const ginTypes: { readonly [type: number]: GpuInitiatedNetwork } = {
  [ncclGinType_t.NCCL_GIN_TYPE_NONE]: 'none',
  [ncclGinType_t.NCCL_GIN_TYPE_PROXY]: 'proxy',
  [ncclGinType_t.NCCL_GIN_TYPE_GDAKI]: 'gdaki',
  [ncclGinType_t.NCCL_GIN_TYPE_GPI]: 'gpi',
}

export function readProperties(communicator: ncclComm_t): CommunicatorProperties {
  const memory = initialNcclCommProperties()
  try {
    checkNccl(ncclCommQueryProperties(communicator, memory), 'ncclCommQueryProperties', communicator)
    const read = readNcclCommProperties(memory)
    return {
      rank: read.rank as number,
      worldSize: read.nRanks as number,
      deviceOrdinal: read.cudaDev as number,
      nvmlDeviceIndex: read.nvmlDev,
      deviceApiSupport: read.deviceApiSupport,
      multimemSupport: read.multimemSupport,
      ginType: ginType(read.ginType),
      lsaTeamCount: read.nLsaTeams,
      hostRmaSupport: read.hostRmaSupport,
      railedGinType: ginType(read.railedGinType),
    }
  } finally {
    memory.dispose()
  }
}

function ginType(type: number | undefined): GpuInitiatedNetwork | undefined {
  return type === undefined ? undefined : ginTypes[type]
}

const value = new BigUint64Array(1)

export function readMemoryStatistics(communicator: ncclComm_t): CommunicatorMemoryStatistics {
  const read = (statistic: ncclCommMemStat_t): bigint => {
    checkNccl(ncclCommMemStats(communicator, statistic, value), 'ncclCommMemStats', communicator)
    return value[0] as bigint
  }
  return withJson({
    suspendable: read(ncclCommMemStat_t.ncclStatGpuMemSuspend),
    isSuspended: read(ncclCommMemStat_t.ncclStatGpuMemSuspended) !== 0n,
    persistent: read(ncclCommMemStat_t.ncclStatGpuMemPersist),
    total: read(ncclCommMemStat_t.ncclStatGpuMemTotal),
  })
}
