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
import { DisposedError, FeatureNotSupportedError } from '@shoal/types'
import { checkNccl } from '../errors.js'
import { LentMemory } from '../lifetime/lent.js'
import { addChild, type Child, exclusively, type LiveCommunicator, removeChild } from '../lifetime/live.js'
import { untilSettled } from '../lifetime/progress.js'
import { whenQuiet } from '../lifetime/quiet.js'
import { type CommunicatorWaitOptions, checkWaitOptions } from '../lifetime/waitOptions.js'
import { ncclVersion, requireNcclVersion } from '../version.js'
import { type DeviceResource, type DeviceResourceHandle, RequiredResource } from './deviceResources.js'
import { checkedTeam, type TeamShape } from './team.js'

/** A team of which kernels want something. */
export interface TeamRequirement {
  /** The team: of `communicator.team()`, or a part of one. */
  readonly team: TeamShape
  /** Whether kernels store into all ranks of the team at once, by NVLink multicast. Default false. */
  readonly multimem?: boolean | undefined
}

/**
 * What the kernels of a device communicator need (`ncclDevCommRequirements`). Counts default to 0 and flags to false,
 * where NCCL has no other default. All ranks ask for the same.
 */
export interface DeviceCommunicatorOptions<R extends string = string, T extends string = string>
  extends CommunicatorWaitOptions {
  /** Stores into all ranks of the LSA team at once, by NVLink multicast. */
  readonly lsaMultimem?: boolean | undefined
  /** Barriers over all ranks (NCCL 2.29). */
  readonly barrierCount?: number | undefined
  /** Barriers of the LSA team. */
  readonly lsaBarrierCount?: number | undefined
  /** Barriers of the rail team, over the network. */
  readonly railGinBarrierCount?: number | undefined
  /** Barriers over all ranks, all of it over the network (NCCL 2.30). */
  readonly worldGinBarrierCount?: number | undefined
  /** Blocks of low-latency all-to-all in the LSA team. */
  readonly lsaLLA2ABlockCount?: number | undefined
  /** Slots of each: see `llA2ASlots`. */
  readonly lsaLLA2ASlotCount?: number | undefined
  /** Have the network functions also where the ranks do not need them. */
  readonly ginForceEnable?: boolean | undefined
  /** Wanted contexts of the network; a hint. NCCL's default is 4. */
  readonly ginContextCount?: number | undefined
  /** Signals of the network, numbered from 0. */
  readonly ginSignalCount?: number | undefined
  /** Counters of the network, numbered from 0. */
  readonly ginCounterCount?: number | undefined
  /** Whom the network reaches: nobody, all ranks, or the rail team (NCCL 2.29). */
  readonly ginConnectionType?: 'none' | 'full' | 'rail' | undefined
  /** Contexts that no other device communicator uses (NCCL 2.29.7). */
  readonly ginExclusiveContexts?: boolean | undefined
  /** Entries of a context's queue (NCCL 2.29.7). */
  readonly ginQueueDepth?: number | undefined
  /** Traffic class of the network (NCCL 2.30). */
  readonly ginTrafficClass?: number | undefined
  /** Whether kernels use strong signals. Default true (NCCL 2.30.7). */
  readonly ginStrongSignalsRequired?: boolean | undefined
  /** Whether kernels use signals at addresses. Default true (NCCL 2.30.7). */
  readonly ginVaSignalsRequired?: boolean | undefined
  /** More that kernels need, by a name of the caller's: `resources` of the result tells where each lies. */
  readonly resources?: Readonly<Record<R, DeviceResource>> | undefined
  /** Teams, by a name of the caller's: `multimem` of the result tells where stores reach all of one. */
  readonly teams?: Readonly<Record<T, TeamRequirement>> | undefined
}

// More than the struct of any version; the library writes that of the requirements' version.
const room = 4096
const firstWithThisLayout = 23003
const connectionTypes = {
  none: ncclGinConnectionType_t.NCCL_GIN_CONNECTION_NONE,
  full: ncclGinConnectionType_t.NCCL_GIN_CONNECTION_FULL,
  rail: ncclGinConnectionType_t.NCCL_GIN_CONNECTION_RAIL,
} as const

/**
 * What a kernel needs to communicate by itself (`ncclDevComm`, NCCL 2.28): such a kernel is compiled against
 * `nccl_device.h` and takes it, by value, and windows as arguments.
 *
 * All ranks make it together. It ends with its communicator at the latest; await the kernels of all ranks that use it before.
 */
export class DeviceCommunicator<R extends string = string, T extends string = string> {
  /** Where each of the resources lies that were asked for, by its name. */
  readonly resources: Readonly<Record<R, DeviceResourceHandle>>
  /** Where stores reach all ranks of a team; undefined for one that asked for none: see `Window.multimemPointer`. */
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
   * The `ncclDevComm`, to be passed to a kernel by value: a copy.
   *
   * @param byteLength `sizeof(ncclDevComm)` in the header the kernel was compiled with, which must be of the version of
   * the library in use, or of 2.30 where that is newer. Default 240, that of 2.30.
   */
  bytes(byteLength: number = ncclDevCommLayout.size): Uint8Array {
    this.#requireAlive('bytes')
    if (typeof byteLength !== 'number') throw new TypeError('DeviceCommunicator.bytes: byteLength must be a number')
    if (!Number.isInteger(byteLength) || byteLength < 1 || byteLength > room) {
      throw new RangeError(`DeviceCommunicator.bytes: byteLength must be from 1 to ${room}, got ${byteLength}`)
    }
    return this.#memory.bytes.slice(0, byteLength)
  }

  /**
   * The fields of the `ncclDevComm`.
   *
   * @throws FeatureNotSupportedError below NCCL 2.30, which lays it out in another way.
   */
  read(): ncclDevComm {
    this.#requireAlive('read')
    const version = ncclVersion()
    if (version.value >= firstWithThisLayout) return ncclDevCommLayout.read(this.#memory)
    throw new FeatureNotSupportedError({
      library: 'NCCL',
      api: 'the fields of a device communicator',
      reason: 'they are laid out in another way before 2.30',
      since: '2.30.3',
      installed: version.toString(),
    })
  }

  /** Waits for the work of the device and gives back what it holds (`ncclDevCommDestroy`, off the JavaScript thread). Idempotent. */
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

  #requireAlive(operation: string): void {
    if (this.#ending !== undefined) throw new DisposedError({ object: 'DeviceCommunicator', operation })
  }

  #forget(): void {
    // What went wrong was told to whoever disposed of it first.
    this.#ending = Promise.resolve()
    this.#forgotten.abort()
    removeChild(this.#live, this.#child)
    this.#memory.dispose()
  }

  async #destroy(): Promise<void> {
    try {
      await whenQuiet(this.#live, 'DeviceCommunicator.dispose', this.#forgotten.signal)
      await exclusively([this.#live], 'DeviceCommunicator.dispose', async (background) => {
        const { context, handle } = this.#live
        const [status = 0] = await offThread({ context, keep: [this.#memory], background }, () => {
          ncclDevCommDestroy(handle, this.#memory)
        })
        checkNccl(status, 'ncclDevCommDestroy', handle)
        if (!this.#live.isBlocking) await untilSettled(this.#live, 'ncclDevCommDestroy')
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
  if (typeof options !== 'object' || options === null) throw new TypeError(`${api}: options must be an object`)
  requireNcclVersion(api, 22803)
  const waitOptions = checkWaitOptions(options, api)
  const { resources = {}, teams = {}, ginConnectionType, signal: _, timeout: __, ...counts } = options
  for (const [name, list] of Object.entries({ resources, teams })) {
    if (typeof list !== 'object' || list === null) throw new TypeError(`${api}: ${name} must be an object`)
  }
  const values: Record<string, unknown> = { ...checkedCounts(counts, api) }
  if (ginConnectionType !== undefined) {
    if (typeof ginConnectionType !== 'string' || !Object.hasOwn(connectionTypes, ginConnectionType)) {
      throw new TypeError(`${api}: ginConnectionType must be one of ${Object.keys(connectionTypes).join(', ')}`)
    }
    values['ginConnectionType'] = connectionTypes[ginConnectionType]
  }
  const required: [string, RequiredResource][] = []
  const owned: NativeMemory[] = []
  let unclaimed: NativeMemory | undefined
  const lent = new LentMemory(live, () => {
    for (const [, resource] of required) resource.dispose()
    for (const memory of owned) memory.dispose()
    unclaimed?.dispose()
  })
  try {
    for (const [name, resource] of Object.entries<DeviceResource>(resources)) {
      required.push([name, new RequiredResource(resource, live.handle, `${api}: resources.${name}`)])
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
      lent.during(async () => {
        const [status = 0] = await offThread({ context: live.context, keep, background }, () => {
          ncclDevCommCreate(live.handle, requirements, memory)
        })
        checkNccl(status, 'ncclDevCommCreate', live.handle)
        // Where the communicator does not block it may still be at work, whatever it answered.
        await untilSettled(live, 'ncclDevCommCreate')
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
    lent.release()
  }
}

interface RequiredTeams {
  /** Address of the list. */
  readonly first: bigint
  readonly read: () => Record<string, bigint | undefined>
}

/** The list of `ncclTeamRequirements`; its memory goes to `owned`. */
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
    const where = `${api}: teams.${name}`
    if (typeof requirement !== 'object' || requirement === null) throw new TypeError(`${where} must be an object`)
    const { size, rank, stride } = checkedTeam(requirement.team, 'team', where)
    const multimem = requirement.multimem ?? false
    if (typeof multimem !== 'boolean') throw new TypeError(`${where}.multimem must be true or false`)
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

function checkedCounts(values: Readonly<Record<string, unknown>>, api: string): Readonly<Record<string, unknown>> {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || typeof value === 'boolean') continue
    if (typeof value !== 'number') throw new TypeError(`${api}: ${name} must be a number, or true or false`)
    if (!Number.isInteger(value) || value < 0 || value > 0x7fff_ffff) {
      throw new RangeError(`${api}: ${name} must be a whole number from 0, got ${value}`)
    }
  }
  return values
}
