/**
 * Structs of NCCL that grew. A program hands most of them over with their size, a magic number and the version it was
 * built with; the library copies as many bytes as both know and treats fields of later versions as unset. The header
 * only has the newest layout, so the earlier ones are told here, checked where a field's place can be checked: the last
 * layout of each struct must be the header's.
 *
 * Where they come from: nccl.h and nccl_device/core.h of the releases 2.14.3, 2.17.1, 2.22.3, 2.26.2, 2.27, 2.28.3,
 * 2.28.7, 2.29.2, 2.29.7, 2.30.3 and 2.30.7, and the versions below which the library itself (parseCommConfig,
 * ncclCommQueryProperties) ignores a field. Between two releases that were seen, a field is dated to the first one that
 * has it.
 */
export interface StructHistory {
  /** name in the header */
  struct: string
  /** macro that initialises it */
  initializer: string
  /** Layouts that only grew at the end. A new run starts where one did not. */
  runs: readonly StructRun[]
}

export interface StructRun {
  /** whether programs of that time initialised it with the macro; otherwise with zeros */
  initialized: boolean
  fields: readonly [name: string, ctype: string, since: number][]
}

const header = (since: number): StructRun['fields'] => [
  ['size', 'size_t', since],
  ['magic', 'unsigned int', since],
  ['version', 'unsigned int', since],
]

export const ncclStructs: readonly StructHistory[] = [
  {
    struct: 'ncclConfig_t',
    initializer: 'NCCL_CONFIG_INITIALIZER',
    runs: [
      {
        initialized: true,
        fields: [
          ...header(21403),
          ['blocking', 'int', 21403],
          ['cgaClusterSize', 'int', 21701],
          ['minCTAs', 'int', 21701],
          ['maxCTAs', 'int', 21701],
          ['netName', 'const char *', 21701],
          ['splitShare', 'int', 21801],
          // The library reads it from configs of 2.25.0 and later; it fills what was padding until then.
          ['trafficClass', 'int', 22501],
          ['commName', 'const char *', 22703],
          ['collnetEnable', 'int', 22703],
          ['CTAPolicy', 'int', 22703],
          ['shrinkShare', 'int', 22703],
          ['nvlsCTAs', 'int', 22703],
          ['nChannelsPerNetPeer', 'int', 22803],
          ['nvlinkCentricSched', 'int', 22803],
          ['graphUsageMode', 'int', 22902],
          ['numRmaCtx', 'int', 22902],
          ['maxP2pPeers', 'int', 23003],
          // The library reads it from configs of 2.30.5 and later.
          ['graphStreamOrdering', 'int', 23005],
        ],
      },
    ],
  },
  {
    struct: 'ncclSimInfo_t',
    initializer: 'NCCL_SIM_INFO_INITIALIZER',
    runs: [{ initialized: true, fields: [...header(22203), ['estimatedTime', 'float', 22203]] }],
  },
  {
    struct: 'ncclCommProperties',
    initializer: 'NCCL_COMM_PROPERTIES_INITIALIZER',
    runs: [
      {
        initialized: true,
        fields: [
          ...header(22902),
          ['rank', 'int', 22902],
          ['nRanks', 'int', 22902],
          ['cudaDev', 'int', 22902],
          ['nvmlDev', 'int', 22902],
          ['deviceApiSupport', 'bool', 22902],
          ['multimemSupport', 'bool', 22902],
          // Of type ncclGinType_t, which was one byte wide at first.
          ['ginType', 'uint8_t', 22902],
        ],
      },
      {
        initialized: true,
        fields: [
          // The library writes what follows ginType for versions after 2.29.3.
          ...header(22907),
          ['rank', 'int', 22907],
          ['nRanks', 'int', 22907],
          ['cudaDev', 'int', 22907],
          ['nvmlDev', 'int', 22907],
          ['deviceApiSupport', 'bool', 22907],
          ['multimemSupport', 'bool', 22907],
          ['ginType', 'ncclGinType_t', 22907],
          ['nLsaTeams', 'int', 22907],
          ['hostRmaSupport', 'bool', 22907],
          ['railedGinType', 'ncclGinType_t', 22907],
        ],
      },
    ],
  },
  {
    struct: 'ncclDevCommRequirements',
    initializer: 'NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER',
    runs: [
      {
        initialized: false,
        fields: [
          ['resourceRequirementsList', 'ncclDevResourceRequirements_t *', 22803],
          ['teamRequirementsList', 'ncclTeamRequirements_t *', 22803],
          ['lsaMultimem', 'bool', 22803],
          ['lsaBarrierCount', 'int', 22803],
        ],
      },
      {
        initialized: false,
        fields: [
          ['resourceRequirementsList', 'ncclDevResourceRequirements_t *', 22807],
          ['teamRequirementsList', 'ncclTeamRequirements_t *', 22807],
          ['lsaMultimem', 'bool', 22807],
          ['barrierCount', 'int', 22807],
          ['lsaBarrierCount', 'int', 22807],
          ['railGinBarrierCount', 'int', 22807],
          ['lsaLLA2ABlockCount', 'int', 22807],
          ['lsaLLA2ASlotCount', 'int', 22807],
          ['ginForceEnable', 'bool', 22807],
          ['ginContextCount', 'int', 22807],
          ['ginSignalCount', 'int', 22807],
          ['ginCounterCount', 'int', 22807],
        ],
      },
      {
        initialized: true,
        fields: [
          ...header(22902),
          ['resourceRequirementsList', 'ncclDevResourceRequirements_t *', 22902],
          ['teamRequirementsList', 'ncclTeamRequirements_t *', 22902],
          ['lsaMultimem', 'bool', 22902],
          ['barrierCount', 'int', 22902],
          ['lsaBarrierCount', 'int', 22902],
          ['railGinBarrierCount', 'int', 22902],
          ['lsaLLA2ABlockCount', 'int', 22902],
          ['lsaLLA2ASlotCount', 'int', 22902],
          ['ginForceEnable', 'bool', 22902],
          ['ginContextCount', 'int', 22902],
          ['ginSignalCount', 'int', 22902],
          ['ginCounterCount', 'int', 22902],
          ['ginConnectionType', 'ncclGinConnectionType_t', 22907],
          ['ginExclusiveContexts', 'bool', 22907],
          ['ginQueueDepth', 'int', 22907],
          ['ginTrafficClass', 'int', 23003],
          ['worldGinBarrierCount', 'int', 23003],
          ['ginStrongSignalsRequired', 'bool', 23007],
          ['ginVaSignalsRequired', 'bool', 23007],
        ],
      },
    ],
  },
]
