import { type BackgroundWork, NativeMemory, offThread } from '@shoal/ffi'
import {
  initialNcclDevCommRequirements,
  type NcclDevCommRequirementsValues,
  type ncclDevComm,
  ncclDevCommCreate,
  ncclDevCommDestroy,
  ncclDevComm as ncclDevCommLayout,
  ncclGinConnectionType_t,
  ncclTeamRequirements,
} from '@shoal/nccl-sys'
import {
  DisposedError,
  FeatureNotSupportedError,
  inspectKey,
  inspectLine,
  isPlainObject,
  type OptionKeys,
  optionalBoolean,
  PublicObject,
  requireBoolean,
  requireInteger,
  requireKeyOf,
  requireMade,
  requireOptions,
  waitKeys,
  withJson,
  wrongType,
} from '@shoal/types'
import { checkNccl } from '../errors.js'
import { whenDeviceIdle } from '../lifetime/deviceIdle.js'
import { InFlightMemory } from '../lifetime/inFlightMemory.js'
import { addChild, type Child, exclusively, type LiveCommunicator, removeChild, settled } from '../lifetime/live.js'
import { type CommunicatorWaitOptions, readWait } from '../lifetime/waitOptions.js'
import type { OwnBytes } from '../ownBytes.js'
import { ncclVersion, requireNcclVersion } from '../version.js'
import { type DeviceResource, type DeviceResourceHandle, RequiredResource } from './deviceResources.js'
import { requireTeam, type TeamShape } from './team.js'

/** A team that kernels need. */
export interface TeamRequirement {
  /** The team: from `communicator.team()`, or a part of one. */
  readonly team: TeamShape
  /** Whether one store of a kernel reaches all ranks of the team, by NVLink multicast. Default: false. */
  readonly multimem?: boolean | undefined
}

/**
 * Requirements of a device communicator's kernels (`ncclDevCommRequirements`).
 *
 * Default: 0 for counts and false for flags, unless NCCL has another default. All ranks pass the same options.
 */
export interface DeviceCommunicatorOptions<R extends string = string, T extends string = string>
  extends CommunicatorWaitOptions {
  /** Enables stores that reach all ranks of the LSA team, by NVLink multicast. */
  readonly lsaMultimem?: boolean | undefined
  /** Barriers over all ranks (NCCL 2.29). */
  readonly barrierCount?: number | undefined
  /** Barriers of the LSA team. */
  readonly lsaBarrierCount?: number | undefined
  /** Barriers of the rail team, over the network. */
  readonly railGinBarrierCount?: number | undefined
  /** Barriers over all ranks, entirely over the network (NCCL 2.30). */
  readonly worldGinBarrierCount?: number | undefined
  /** Blocks of low-latency all-to-all in the LSA team. */
  readonly lsaLLA2ABlockCount?: number | undefined
  /** Slots per block: see `llA2ASlots`. */
  readonly lsaLLA2ASlotCount?: number | undefined
  /** Provides the network functions even if the ranks do not need them. */
  readonly ginForceEnable?: boolean | undefined
  /** Requested network contexts; a hint. NCCL's default is 4. */
  readonly ginContextCount?: number | undefined
  /** Network signals, numbered from 0. */
  readonly ginSignalCount?: number | undefined
  /** Network counters, numbered from 0. */
  readonly ginCounterCount?: number | undefined
  /** Ranks that the network connects: none, all, or the rail team (NCCL 2.29). */
  readonly ginConnectionType?: 'none' | 'full' | 'rail' | undefined
  /** Reserves contexts that no other device communicator uses (NCCL 2.29.7). */
  readonly ginExclusiveContexts?: boolean | undefined
  /** Queue entries per context (NCCL 2.29.7). */
  readonly ginQueueDepth?: number | undefined
  /** Traffic class of the network (NCCL 2.30). */
  readonly ginTrafficClass?: number | undefined
  /** Whether kernels use strong signals. Default: true (NCCL 2.30.7). */
  readonly ginStrongSignalsRequired?: boolean | undefined
  /** Whether kernels use signals at addresses. Default: true (NCCL 2.30.7). */
  readonly ginVaSignalsRequired?: boolean | undefined
  /** Further resources of kernels, by name; `resources` of the result contains their positions. */
  readonly resources?: Readonly<Record<R, DeviceResource>> | undefined
  /** Teams, by name; `multimem` of the result contains their multicast addresses. */
  readonly teams?: Readonly<Record<T, TeamRequirement>> | undefined
}

// Larger than the struct of any version; the library writes the struct of the requirements' version.
const room = 4096
const firstWithThisLayout = 23003
const connectionTypes = {
  none: ncclGinConnectionType_t.NCCL_GIN_CONNECTION_NONE,
  full: ncclGinConnectionType_t.NCCL_GIN_CONNECTION_FULL,
  rail: ncclGinConnectionType_t.NCCL_GIN_CONNECTION_RAIL,
} as const

const flagNames = [
  'lsaMultimem',
  'ginForceEnable',
  'ginExclusiveContexts',
  'ginStrongSignalsRequired',
  'ginVaSignalsRequired',
] as const
const countNames = [
  'barrierCount',
  'lsaBarrierCount',
  'railGinBarrierCount',
  'worldGinBarrierCount',
  'lsaLLA2ABlockCount',
  'lsaLLA2ASlotCount',
  'ginContextCount',
  'ginSignalCount',
  'ginCounterCount',
  'ginQueueDepth',
  'ginTrafficClass',
] as const
const optionKeys = {
  ...Object.fromEntries([...flagNames, ...countNames].map((name) => [name, true])),
  ginConnectionType: true,
  resources: true,
  teams: true,
  ...waitKeys,
}
const teamKeys: OptionKeys<TeamRequirement> = { team: true, multimem: true }

/**
 * Lets kernels communicate themselves (`ncclDevComm`, NCCL 2.28).
 *
 * A kernel that communicates is compiled with `nccl_device.h`. It takes this struct by value, and windows as arguments.
 *
 * All ranks create a device communicator together. It ends with its communicator at the latest. Before you dispose of
 * it, wait for all kernels that use it, on all ranks.
 *
 * @example
 * ```ts
 * await using forKernels = await communicator.createDeviceCommunicator({ lsaBarrierCount: 16 })
 * using argument = DeviceBuffer.from(device, forKernels.bytes()) // ncclDevComm
 * ```
 */
export class DeviceCommunicator<R extends string = string, T extends string = string> extends PublicObject {
  /** Handles of the requested resources, by name. */
  readonly resources: Readonly<Record<R, DeviceResourceHandle>>
  /** Multicast address per team, for `Window.multimemPointer`; undefined for a team that requested no multicast. */
  readonly multimem: Readonly<Record<T, bigint | undefined>>
  readonly #live: LiveCommunicator
  readonly #memory: NativeMemory
  readonly #child: Child
  readonly #forgotten = new AbortController()
  #ending: Promise<void> | undefined

  /** @internal */
  constructor(
    live: LiveCommunicator,
    memory: NativeMemory,
    resources: Readonly<Record<R, DeviceResourceHandle>>,
    multimem: Readonly<Record<T, bigint | undefined>>,
  ) {
    requireMade(multimem, 'DeviceCommunicator', 'Communicator.createDeviceCommunicator', 'object')
    super()
    this.resources = Object.freeze(resources)
    this.multimem = Object.freeze(multimem)
    this.#live = live
    this.#memory = memory
    this.#child = { release: () => this.dispose(), forget: () => this.#forget() }
    addChild(live, this.#child)
  }

  /** Whether it was disposed of, or its communicator has ended. */
  get disposed(): boolean {
    return this.#ending !== undefined
  }

  /**
   * Returns a copy of the `ncclDevComm`, to pass to a kernel by value.
   *
   * The copy does not keep the device communicator, which must outlive the kernel. For a graph, call
   * `graph.keep(deviceCommunicator)`.
   *
   * @param byteLength `sizeof(ncclDevComm)` in the header of the kernel. The header must have the version of the loaded
   * library, or 2.30 if the library is newer. Default: 240, as in 2.30.
   */
  bytes(byteLength: number = ncclDevCommLayout.size): OwnBytes {
    this.#requireAlive('bytes')
    requireInteger(byteLength, 'DeviceCommunicator.bytes', 'byteLength', 1, room)
    return this.#memory.bytes.slice(0, byteLength)
  }

  /**
   * Returns the fields of the `ncclDevComm`.
   *
   * @throws FeatureNotSupportedError below NCCL 2.30, which has another layout.
   */
  read(): ncclDevComm {
    this.#requireAlive('read')
    const version = ncclVersion()
    if (version.value >= firstWithThisLayout) return withJson(ncclDevCommLayout.read(this.#memory))
    throw new FeatureNotSupportedError({
      library: 'NCCL',
      api: 'the fields of a device communicator',
      reason: 'their layout differs before 2.30',
      since: '2.30.3',
      installed: version.toString(),
    })
  }

  /** Waits for the device and frees the resources (`ncclDevCommDestroy`, off the JavaScript thread). Idempotent. */
  dispose(): Promise<void> {
    this.#ending ??= this.#destroy()
    return this.#ending
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  get [Symbol.toStringTag](): string {
    return 'DeviceCommunicator'
  }

  override [inspectKey](): string {
    const { rank, worldSize, deviceOrdinal } = this.#live
    return inspectLine('DeviceCommunicator', { rank, worldSize, deviceOrdinal, disposed: this.disposed || undefined })
  }

  #requireAlive(operation: string): void {
    if (this.#ending !== undefined) throw new DisposedError({ object: 'DeviceCommunicator', operation })
  }

  #forget(): void {
    // The first dispose() reports the errors.
    this.#ending = Promise.resolve()
    this.#forgotten.abort()
    removeChild(this.#live, this.#child)
    this.#memory.dispose()
  }

  async #destroy(): Promise<void> {
    try {
      await whenDeviceIdle(this.#live, 'DeviceCommunicator.dispose', this.#forgotten.signal)
      await exclusively([this.#live], 'DeviceCommunicator.dispose', async (background) => {
        const { context, handle } = this.#live
        const [status = 0] = await offThread({ context, keep: [this.#memory], background }, () => {
          ncclDevCommDestroy(handle, this.#memory)
        })
        checkNccl(status, 'ncclDevCommDestroy', handle)
        if (!this.#live.isBlocking) await settled(this.#live, 'ncclDevCommDestroy')
      })
    } finally {
      this.#forget()
    }
  }
}

export async function createDeviceCommunicator<R extends string, T extends string>(
  live: LiveCommunicator,
  options: DeviceCommunicatorOptions<R, T>,
): Promise<DeviceCommunicator<R, T>> {
  const api = 'Communicator.createDeviceCommunicator'
  requireOptions(options, api, optionKeys as OptionKeys<DeviceCommunicatorOptions<R, T>>)
  requireNcclVersion(api, 22803)
  const waitOptions = readWait(options, api)
  const { resources = {}, teams = {}, ginConnectionType } = options
  for (const [name, table] of Object.entries({ resources, teams })) {
    if (!isPlainObject(table)) throw wrongType(api, name, 'a plain object', table)
  }
  const values: Record<string, unknown> = checkedCounts(options, api)
  if (ginConnectionType !== undefined) {
    values['ginConnectionType'] = requireKeyOf(ginConnectionType, api, 'ginConnectionType', connectionTypes)
  }
  const required: [string, RequiredResource][] = []
  const owned: NativeMemory[] = []
  let unclaimed: NativeMemory | undefined
  const inFlight = new InFlightMemory(live, () => {
    for (const [, resource] of required) resource.dispose()
    for (const memory of owned) memory.dispose()
    unclaimed?.dispose()
  })
  try {
    for (const [name, resource] of Object.entries<DeviceResource>(resources)) {
      required.push([name, new RequiredResource(resource, live.handle, api, `resources.${name}`)])
    }
    for (const [index, [, resource]] of required.entries()) resource.linkTo(required[index + 1]?.[1])
    const multimem = requireTeams(teams, owned, api)
    const requirements = initialNcclDevCommRequirements({
      ...(values as NcclDevCommRequirementsValues),
      resourceRequirementsList: required[0]?.[1].address ?? 0n,
      teamRequirementsList: multimem.first,
    })
    owned.push(requirements)
    const memory = NativeMemory.allocate(room)
    unclaimed = memory
    const keep = [...owned, ...required.flatMap(([, resource]) => resource.memory), memory]
    const create = (background: BackgroundWork): Promise<void> =>
      inFlight.during(async () => {
        const [status = 0] = await offThread({ context: live.context, keep, background }, () => {
          ncclDevCommCreate(live.handle, requirements, memory)
        })
        checkNccl(status, 'ncclDevCommCreate', live.handle)
        // A nonblocking communicator may still be working, whatever it returned.
        await settled(live, 'ncclDevCommCreate')
      })
    await exclusively([live], 'createDeviceCommunicator', create, waitOptions)
    const handles = Object.fromEntries(required.map(([name, resource]) => [name, resource.read()])) as Record<
      R,
      DeviceResourceHandle
    >
    const addresses = multimem.read() as Record<T, bigint | undefined>
    unclaimed = undefined
    return new DeviceCommunicator(live, memory, handles, addresses)
  } finally {
    inFlight.release()
  }
}

interface RequiredTeams {
  /** Address of the list. */
  readonly first: bigint
  readonly read: () => Record<string, bigint | undefined>
}

/** Makes the list of `ncclTeamRequirements`; `owned` receives its memory. */
function requireTeams(
  teams: Readonly<Record<string, TeamRequirement>>,
  owned: NativeMemory[],
  api: string,
): RequiredTeams {
  const entries = Object.entries(teams)
  const links = entries.map(() => NativeMemory.allocate(ncclTeamRequirements.size))
  const outs = NativeMemory.allocate(8 * Math.max(entries.length, 1))
  owned.push(...links, outs)
  for (const [index, [name, requirement]] of entries.entries()) {
    const where = `teams.${name}`
    requireOptions(requirement, api, teamKeys, where)
    const { size, rank, stride } = requireTeam(requirement.team, api, `${where}.team`)
    const multimem = optionalBoolean(requirement.multimem, api, `${where}.multimem`, false)
    ncclTeamRequirements.write(links[index] as NativeMemory, {
      next: links[index + 1]?.address ?? 0n,
      team: { nRanks: size, rank, stride },
      multimem,
      outMultimemHandle: multimem ? outs.address + BigInt(8 * index) : 0n,
    })
  }
  const baseOf = (index: number): bigint | undefined => {
    const base = outs.u64[index]
    return base === 0n ? undefined : base
  }
  return {
    first: links[0]?.address ?? 0n,
    read: () => Object.fromEntries(entries.map(([name], index) => [name, baseOf(index)])),
  }
}

function checkedCounts(options: DeviceCommunicatorOptions, api: string): Record<string, number | boolean> {
  const values: Record<string, number | boolean> = {}
  for (const name of flagNames) {
    if (options[name] !== undefined) values[name] = requireBoolean(options[name], api, name)
  }
  for (const name of countNames) {
    if (options[name] !== undefined) values[name] = requireInteger(options[name], api, name, 0, 0x7fff_ffff)
  }
  return values
}
