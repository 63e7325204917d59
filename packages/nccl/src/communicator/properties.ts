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
 * What a communicator is and can do (`ncclCommProperties`). A field that the NCCL in use does not tell is undefined.
 */
export interface CommunicatorProperties {
  /** Its place among the ranks, from 0. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of its device. */
  readonly deviceOrdinal: number
  /** The device in NVML's order, which `CUDA_VISIBLE_DEVICES` does not change. */
  readonly nvmlDeviceIndex: number | undefined
  /** Whether kernels can communicate (`createDeviceCommunicator`). */
  readonly deviceApiSupport: boolean | undefined
  /** Whether kernels can use multicast addresses. */
  readonly multimemSupport: boolean | undefined
  /** How kernels start transfers to all ranks over the network. */
  readonly ginType: GpuInitiatedNetwork | undefined
  /** Groups of ranks that reach each other's memory by load and store. */
  readonly lsaTeamCount: number | undefined
  /** Whether `putSignal` and its like work. */
  readonly hostRmaSupport: boolean | undefined
  /** The same for the ranks of a rail: those with the same place on their machines. */
  readonly railedGinType: GpuInitiatedNetwork | undefined
}

/** GPU memory of a communicator, in bytes (`ncclCommMemStats`). */
export interface CommunicatorMemoryStatistics {
  /** What `suspend()` gives back. */
  readonly suspendable: bigint
  /** Whether it has been given back. */
  readonly isSuspended: boolean
  /** What stays for the life of the communicator. */
  readonly persistent: bigint
  /** Both together. */
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
