import {
  type CUdevResource,
  CUdevResourceType,
  cuDeviceGetDevResource,
  cuDevSmResourceSplitByCount,
  CUdevResource as Resource,
} from '@shoal/cuda-sys/driver'
import {
  inspectKey,
  inspectLine,
  loadedFrom,
  type OptionKeys,
  optionalBoolean,
  PublicObject,
  requireInteger,
  requireMade,
  requireOptions,
} from '@shoal/types'
import { contextOf, type DeviceOrContext } from '../../core/context/context.js'
import type { Device } from '../../core/device/device.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'

/** Options for splitting a device. */
export interface SplitOptions {
  /** Maximum number of groups. Default: as many as possible. */
  readonly groups?: number | undefined
  /** Allows groups that are too small to run a cluster together. Default: false. */
  readonly ignoreCoscheduling?: boolean | undefined
  /** Makes groups that fit the largest clusters. Default: false. */
  readonly maxPotentialClusterSize?: boolean | undefined
}

/** The groups of a split device, and the rest. */
export interface SplitResource {
  /** The groups, all of the same size. */
  readonly groups: readonly DeviceResource[]
  /** The rest; undefined if nothing is left. */
  readonly remaining: DeviceResource | undefined
}

const splitKeys: OptionKeys<SplitOptions> = { groups: true, ignoreCoscheduling: true, maxPotentialClusterSize: true }
const splitFlags = { ignoreCoscheduling: 1, maxPotentialClusterSize: 2 } as const
const { CU_DEV_RESOURCE_TYPE_SM: multiprocessorType } = CUdevResourceType

/**
 * All or some multiprocessors of a device (`CUdevResource`). A green context runs its kernels on these multiprocessors.
 *
 * @example
 * const { groups, remaining } = DeviceResource.of(device).split(16)
 */
export class DeviceResource extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** The device of the multiprocessors. */
  readonly device: Device
  /** Number of multiprocessors. */
  readonly multiprocessors: number
  /** Minimum number of multiprocessors of a part; 0 if the driver does not report it. */
  readonly minimumPartition: number
  /** A part's number of multiprocessors is a multiple of this; 0 if the driver does not report it. */
  readonly alignment: number
  readonly #bytes: Uint8Array

  /** @internal */
  constructor(device: Device, bytes: Uint8Array) {
    requireMade(bytes?.buffer, 'DeviceResource', 'DeviceResource.of', 'object')
    super()
    const { sm }: CUdevResource = Resource.read(bytes)
    this.device = device
    this.#bytes = bytes
    this.multiprocessors = sm.smCount
    this.minimumPartition = sm.minSmPartitionSize
    this.alignment = sm.smCoscheduledAlignment
  }

  /**
   * Returns all multiprocessors of a device (`cuDeviceGetDevResource`).
   * @throws TypeError, RangeError; StatusError; VersionTooOldError before CUDA 12.4
   */
  static of(owner: DeviceOrContext): DeviceResource {
    const { device } = contextOf(owner, 'DeviceResource.of')
    const bytes = new Uint8Array(Resource.size)
    check(cuDeviceGetDevResource(device.handle, bytes, multiprocessorType), 'cuDeviceGetDevResource')
    return new DeviceResource(device, bytes)
  }

  /** @internal The resource in C's form. */
  get _bytes(): Uint8Array {
    return this.#bytes
  }

  /**
   * Splits the multiprocessors into groups of at least `multiprocessors`, rounded up as the device requires
   * (`cuDevSmResourceSplitByCount`).
   * @param multiprocessors from 1 to the number of multiprocessors
   * @throws TypeError, RangeError; StatusError when not even one such group is possible
   */
  split(multiprocessors: number, options: SplitOptions = {}): SplitResource {
    const api = 'DeviceResource.split'
    requireInteger(multiprocessors, api, 'multiprocessors', 1, this.multiprocessors)
    requireOptions(options, api, splitKeys)
    let flags = 0
    for (const [name, bit] of Object.entries(splitFlags) as [keyof typeof splitFlags, number][]) {
      if (optionalBoolean(options[name], api, name, false)) flags |= bit
    }
    const { groups } = options
    const wanted =
      groups === undefined
        ? this.#mostGroups(multiprocessors, flags)
        : requireInteger(groups, api, 'groups', 1, this.multiprocessors)
    const count = scratch()
    count.u32[0] = wanted
    const parts = new Uint8Array(Resource.size * Math.max(wanted, 1))
    const rest = new Uint8Array(Resource.size)
    check(
      cuDevSmResourceSplitByCount(parts, count, this.#bytes, rest, flags, multiprocessors),
      'cuDevSmResourceSplitByCount',
    )
    const made = Array.from(
      { length: count.u32[0] as number },
      (_, index) => new DeviceResource(this.device, parts.slice(index * Resource.size, (index + 1) * Resource.size)),
    )
    const { type, sm } = Resource.read(rest)
    const isLeft = (type as number) === multiprocessorType && sm.smCount > 0
    return { groups: made, remaining: isLeft ? new DeviceResource(this.device, rest) : undefined }
  }

  #mostGroups(multiprocessors: number, flags: number): number {
    const count = scratch()
    count.u32[0] = 0
    check(
      cuDevSmResourceSplitByCount(null, count, this.#bytes, null, flags, multiprocessors),
      'cuDevSmResourceSplitByCount',
    )
    return count.u32[0] as number
  }

  get [Symbol.toStringTag](): string {
    return 'DeviceResource'
  }

  override [inspectKey](): string {
    return inspectLine('DeviceResource', { device: this.device.ordinal, multiprocessors: this.multiprocessors })
  }
}
