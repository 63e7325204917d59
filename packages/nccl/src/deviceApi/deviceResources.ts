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

/** Barriers of a team by loads and stores, for `ncclLsaBarrierSession` (`ncclLsaBarrierCreateRequirement`). */
export interface LsaBarrierResource {
  /** Discriminates resources. */
  readonly kind: 'lsaBarrier'
  /** Team of the barriers; its ranks must reach each other's memory. */
  readonly team: TeamShape
  /** Number of barriers, such as one per block of a kernel. */
  readonly barriers: number
}

/** Barriers of a team over the network, for `ncclGinBarrierSession` (`ncclGinBarrierCreateRequirement`). */
export interface GinBarrierResource {
  /** Discriminates resources. */
  readonly kind: 'ginBarrier'
  /** Team of the barriers. */
  readonly team: TeamShape
  /** Number of barriers, such as one per block of a kernel. */
  readonly barriers: number
}

/** Memory for `ncclLLA2ASession` (`ncclLLA2ACreateRequirement`). */
export interface LlA2AResource {
  /** Discriminates resources. */
  readonly kind: 'llA2A'
  /** Number of kernel blocks that use it. */
  readonly blocks: number
  /** Slots per block: see `llA2ASlots`. */
  readonly slots: number
}

/** Memory for data that a kernel sends over the network (`ncclGinOutboxCreateRequirement`, NCCL 2.29). */
export interface GinOutboxResource {
  /** Discriminates resources. */
  readonly kind: 'ginOutbox'
  /** Number of kernel blocks that use it. */
  readonly blocks: number
  /** Binary logarithm of the bytes per block. */
  readonly sizeLog2: number
}

/** Memory for data that peers send over the network (`ncclGinInboxA2ACreateRequirement`, NCCL 2.29). */
export interface GinInboxResource {
  /** Discriminates resources. */
  readonly kind: 'ginInboxA2A'
  /** The ranks that send. */
  readonly peers: TeamShape
  /** Number of kernel blocks that use it. */
  readonly blocks: number
  /** Binary logarithm of the bytes per block. */
  readonly sizeLog2: number
}

/** Symmetric memory, signals and counters for free use by a kernel. */
export interface BufferResource {
  /** Discriminates resources. */
  readonly kind: 'buffer'
  /** Size in bytes, on each rank. */
  readonly byteLength: number
  /** Alignment in bytes, a power of two. Default: 16. */
  readonly alignment?: number | undefined
  /** Number of network signals. Default: 0. */
  readonly ginSignals?: number | undefined
  /** Number of network counters. Default: 0. */
  readonly ginCounters?: number | undefined
}

/** A resource that a kernel with the device API needs from its device communicator. */
export type DeviceResource =
  | LsaBarrierResource
  | GinBarrierResource
  | LlA2AResource
  | GinOutboxResource
  | GinInboxResource
  | BufferResource

/** NCCL memory and network resources that a resource takes per rank. */
export interface DeviceResourceNeeds {
  /** Size in bytes. */
  readonly byteLength: number
  /** Alignment in bytes. */
  readonly alignment: number
  /** Number of network signals. */
  readonly ginSignals: number
  /** Number of network counters. */
  readonly ginCounters: number
}

/** Handle of a resource in a created device communicator. */
export interface DeviceResourceHandle {
  /** Kind of the resource. */
  readonly kind: DeviceResource['kind']
  /** The struct that the kernel's session takes by value, such as `ncclLsaBarrierHandle_t`. */
  readonly bytes: OwnBytes
  /** The fields of the struct. */
  readonly fields: Readonly<Record<string, number>>
}

// Handle of a buffer: its offset, first signal and first counter. C has no struct for it.
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
 * Returns the slots of an `llA2A` resource for a number and size of elements (`ncclLLA2ACalcSlots`, NCCL 2.28).
 *
 * @param maxElements most elements
 * @param maxElementBytes most bytes per element
 */
export function llA2ASlots(maxElements: number, maxElementBytes: number): number {
  const api = 'llA2ASlots'
  return ncclLLA2ACalcSlots(
    requireInteger(maxElements, api, 'maxElements', 0, largestInt),
    requireInteger(maxElementBytes, api, 'maxElementBytes', 1, largestInt),
  )
}

/** Returns the memory and network resources that a resource takes. Needs no communicator. */
export function deviceResourceNeeds(resource: DeviceResource): DeviceResourceNeeds {
  const made = new RequiredResource(resource, null, 'deviceResourceNeeds', 'resource')
  try {
    return made.needs
  } finally {
    made.dispose()
  }
}

/** One link of an `ncclDevCommRequirements`' list, with the memory for its results. */
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
