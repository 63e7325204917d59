import { NativeMemory } from '@shoal/ffi'
import {
  type ncclComm_t,
  ncclDevResourceRequirements,
  ncclGinBarrierCreateRequirement,
  ncclGinBarrierHandle,
  ncclGinInboxA2ACreateRequirement,
  ncclGinInboxA2AHandle,
  ncclGinOutboxCreateRequirement,
  ncclGinOutboxHandle,
  ncclLLA2ACalcSlots,
  ncclLLA2ACreateRequirement,
  ncclLLA2AHandle,
  ncclLsaBarrierCreateRequirement,
  ncclLsaBarrierHandle,
} from '@shoal/nccl-sys'
import {
  isPlainObject,
  type OptionKeys,
  outOfRange,
  requireInteger,
  requireKeyOf,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { checkNccl } from '../errors.js'
import type { OwnBytes } from '../ownBytes.js'
import { requireTeam, type TeamShape, teamBytes } from './team.js'

/** Barriers of a team over loads and stores, for `ncclLsaBarrierSession` (`ncclLsaBarrierCreateRequirement`). */
export interface LsaBarrierResource {
  /** Which resource it is. */
  readonly kind: 'lsaBarrier'
  /** Whose barriers they are; a team of ranks that reach each other's memory. */
  readonly team: TeamShape
  /** Number of barriers, such as one for each block of a kernel. */
  readonly barriers: number
}

/** Barriers of a team over the network, for `ncclGinBarrierSession` (`ncclGinBarrierCreateRequirement`). */
export interface GinBarrierResource {
  /** Which resource it is. */
  readonly kind: 'ginBarrier'
  /** Whose barriers they are. */
  readonly team: TeamShape
  /** Number of barriers, such as one for each block of a kernel. */
  readonly barriers: number
}

/** Room for `ncclLLA2ASession` (`ncclLLA2ACreateRequirement`). */
export interface LlA2AResource {
  /** Which resource it is. */
  readonly kind: 'llA2A'
  /** Blocks of the kernel that use it. */
  readonly blocks: number
  /** See `llA2ASlots`. */
  readonly slots: number
}

/** Room for what a kernel sends over the network (`ncclGinOutboxCreateRequirement`, NCCL 2.29). */
export interface GinOutboxResource {
  /** Which resource it is. */
  readonly kind: 'ginOutbox'
  /** Blocks of the kernel that use it. */
  readonly blocks: number
  /** Binary logarithm of the bytes of a block. */
  readonly sizeLog2: number
}

/** Room for what peers send here over the network (`ncclGinInboxA2ACreateRequirement`, NCCL 2.29). */
export interface GinInboxResource {
  /** Which resource it is. */
  readonly kind: 'ginInboxA2A'
  /** The ranks that send. */
  readonly peers: TeamShape
  /** Blocks of the kernel that use it. */
  readonly blocks: number
  /** Binary logarithm of the bytes of a block. */
  readonly sizeLog2: number
}

/** Symmetric memory, signals and counters of a kernel's own making. */
export interface BufferResource {
  /** Which resource it is. */
  readonly kind: 'buffer'
  /** Size in bytes, on each rank. */
  readonly byteLength: number
  /** In bytes, a power of two. Default 16. */
  readonly alignment?: number | undefined
  /** Signals of the network. Default 0. */
  readonly ginSignals?: number | undefined
  /** Counters of the network. Default 0. */
  readonly ginCounters?: number | undefined
}

/** Something that a kernel with the device API needs from its device communicator. */
export type DeviceResource =
  | LsaBarrierResource
  | GinBarrierResource
  | LlA2AResource
  | GinOutboxResource
  | GinInboxResource
  | BufferResource

/** What a resource takes of the memory that NCCL sets aside on each rank. */
export interface DeviceResourceNeeds {
  /** Size in bytes. */
  readonly byteLength: number
  /** In bytes. */
  readonly alignment: number
  /** Signals of the network. */
  readonly ginSignals: number
  /** Counters of the network. */
  readonly ginCounters: number
}

/** Where a resource lies, once its device communicator is made. */
export interface DeviceResourceHandle {
  /** Which kind of resource it is. */
  readonly kind: DeviceResource['kind']
  /** The struct that the session of this kind takes in a kernel (`ncclLsaBarrierHandle_t` and so on), by value. */
  readonly bytes: OwnBytes
  /** The same, field by field. */
  readonly fields: Readonly<Record<string, number>>
}

// The handle of a buffer: where it lies, and the first of its signals and counters. There is no struct for it in C.
const bufferFields = ['bufHandle', 'signal0', 'counter0'] as const
const largestHandle = 16
const largestInt = 0x7fff_ffff

const resourceKeys: { readonly [K in DeviceResource['kind']]: OptionKeys<Extract<DeviceResource, { kind: K }>> } = {
  lsaBarrier: { kind: true, team: true, barriers: true },
  ginBarrier: { kind: true, team: true, barriers: true },
  llA2A: { kind: true, blocks: true, slots: true },
  ginOutbox: { kind: true, blocks: true, sizeLog2: true },
  ginInboxA2A: { kind: true, peers: true, blocks: true, sizeLog2: true },
  buffer: { kind: true, byteLength: true, alignment: true, ginSignals: true, ginCounters: true },
}

/**
 * Slots that a resource of kind `llA2A` needs for so many elements of at most so many bytes (`ncclLLA2ACalcSlots`, NCCL
 * 2.28).
 */
export function llA2ASlots(maxElements: number, maxElementBytes: number): number {
  const api = 'llA2ASlots'
  return ncclLLA2ACalcSlots(
    requireInteger(maxElements, api, 'maxElements', 0, largestInt),
    requireInteger(maxElementBytes, api, 'maxElementBytes', 1, largestInt),
  )
}

/** What a resource takes. No communicator is needed to know. */
export function deviceResourceNeeds(resource: DeviceResource): DeviceResourceNeeds {
  const made = new RequiredResource(resource, null, 'deviceResourceNeeds', 'resource')
  try {
    return made.needs
  } finally {
    made.dispose()
  }
}

/** One link of an `ncclDevCommRequirements`' list, with the memory its results are written to. */
export class RequiredResource {
  readonly #resource: DeviceResource
  readonly #handle = NativeMemory.allocate(largestHandle)
  readonly #requirement = NativeMemory.allocate(ncclDevResourceRequirements.size)

  constructor(resource: DeviceResource, communicator: ncclComm_t | null, api: string, name: string) {
    this.#resource = resource
    try {
      this.#require(communicator, api, name)
    } catch (error) {
      this.dispose()
      throw error
    }
  }

  get address(): bigint {
    return this.#requirement.address
  }

  /** The memory that NCCL reads and writes. */
  get memory(): readonly NativeMemory[] {
    return [this.#handle, this.#requirement]
  }

  get needs(): DeviceResourceNeeds {
    const { bufferSize, bufferAlign, ginSignalCount, ginCounterCount } = ncclDevResourceRequirements.read(
      this.#requirement,
    )
    return {
      byteLength: Number(bufferSize),
      alignment: Number(bufferAlign),
      ginSignals: ginSignalCount,
      ginCounters: ginCounterCount,
    }
  }

  linkTo(next: RequiredResource | undefined): void {
    const link = ncclDevResourceRequirements.read(this.#requirement)
    ncclDevResourceRequirements.write(this.#requirement, { ...link, next: next?.address ?? 0n })
  }

  read(): DeviceResourceHandle {
    const { kind } = this.#resource
    if (kind === 'buffer') {
      const fields = Object.fromEntries(bufferFields.map((name, index) => [name, this.#handle.u32[index] as number]))
      return { kind, bytes: this.#handle.bytes.slice(0, 4 * bufferFields.length), fields }
    }
    const codec = codecs[kind]
    const fields = codec.read(this.#handle) as unknown as Record<string, number>
    return { kind, bytes: this.#handle.bytes.slice(0, codec.size), fields }
  }

  dispose(): void {
    this.#handle.dispose()
    this.#requirement.dispose()
  }

  #require(communicator: ncclComm_t | null, api: string, name: string): void {
    const resource = this.#resource
    if (!isPlainObject(resource)) throw wrongType(api, name, 'a plain object with a kind', resource)
    requireOptions<object>(resource, api, requireKeyOf<object>(resource.kind, api, `${name}.kind`, resourceKeys), name)
    const integer = (value: unknown, field: string, greatest: number = largestInt): number =>
      requireInteger(value, api, `${name}.${field}`, 0, greatest)
    const handle = this.#handle
    const requirement = this.#requirement
    switch (resource.kind) {
      case 'lsaBarrier': {
        const team = teamBytes(requireTeam(resource.team, api, `${name}.team`))
        const barriers = integer(resource.barriers, 'barriers')
        const status = ncclLsaBarrierCreateRequirement(team, barriers, handle, requirement)
        checkNccl(status, 'ncclLsaBarrierCreateRequirement')
        return
      }
      case 'ginBarrier': {
        const team = teamBytes(requireTeam(resource.team, api, `${name}.team`))
        const barriers = integer(resource.barriers, 'barriers')
        const status = ncclGinBarrierCreateRequirement(communicator, team, barriers, handle, requirement)
        checkNccl(status, 'ncclGinBarrierCreateRequirement', communicator)
        return
      }
      case 'llA2A': {
        const blocks = integer(resource.blocks, 'blocks')
        const slots = integer(resource.slots, 'slots')
        const status = ncclLLA2ACreateRequirement(blocks, slots, handle, requirement)
        checkNccl(status, 'ncclLLA2ACreateRequirement')
        return
      }
      case 'ginOutbox': {
        const blocks = integer(resource.blocks, 'blocks')
        const status = ncclGinOutboxCreateRequirement(
          blocks,
          integer(resource.sizeLog2, 'sizeLog2', 30),
          handle,
          requirement,
        )
        checkNccl(status, 'ncclGinOutboxCreateRequirement')
        return
      }
      case 'ginInboxA2A': {
        const peers = teamBytes(requireTeam(resource.peers, api, `${name}.peers`))
        const blocks = integer(resource.blocks, 'blocks')
        const sizeLog2 = integer(resource.sizeLog2, 'sizeLog2', 30)
        const status = ncclGinInboxA2ACreateRequirement(peers, blocks, sizeLog2, handle, requirement)
        checkNccl(status, 'ncclGinInboxA2ACreateRequirement')
        return
      }
      case 'buffer': {
        const { byteLength, alignment = 16, ginSignals = 0, ginCounters = 0 } = resource
        if (!Number.isInteger(Math.log2(integer(alignment, 'alignment')))) {
          throw outOfRange(api, `${name}.alignment`, 'a power of two', alignment)
        }
        const base = this.#handle.address
        ncclDevResourceRequirements.write(requirement, {
          next: 0n,
          bufferSize: BigInt(integer(byteLength, 'byteLength')),
          bufferAlign: BigInt(alignment),
          outBufferHandle: base,
          ginSignalCount: integer(ginSignals, 'ginSignals'),
          ginCounterCount: integer(ginCounters, 'ginCounters'),
          outGinSignalStart: base + 4n,
          outGinCounterStart: base + 8n,
        })
      }
    }
  }
}

const codecs = {
  lsaBarrier: ncclLsaBarrierHandle,
  ginBarrier: ncclGinBarrierHandle,
  llA2A: ncclLLA2AHandle,
  ginOutbox: ncclGinOutboxHandle,
  ginInboxA2A: ncclGinInboxA2AHandle,
} as const
