import { type DeviceLike, toDeviceOrdinal } from '@shoal/types'
import type { CommunicatorWaitOptions } from '../lifetime/waitOptions.js'
import type { CommunicatorConfig } from './config.js'
import { UniqueId } from './uniqueId.js'

/** How communicators are made. */
export interface InitOptions {
  /** How the communicator works; what is left out is NCCL's choice. Needs NCCL 2.14. */
  readonly config?: CommunicatorConfig | undefined
  /**
   * Gives up the init when it fires, and afterwards aborts the communicator, at any time: the `lost` signal of a job
   * belongs here. For a limit on the init alone there is `timeout`.
   */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for the init. Default: no limit. */
  readonly timeout?: number | undefined
}

/** How one rank of a communicator is made. */
export interface InitRankOptions extends InitOptions {
  /** Device this rank works on: an object of `@shoal/driver`, anything with the device protocol, or an ordinal. */
  readonly device: DeviceLike | number
  /** This process's place, from 0 to `worldSize` - 1. Each rank exactly once. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /**
   * The id that one rank made and all of them got. For very many ranks several ids, the same in the same order for all,
   * made by as many ranks (`ncclCommInitRankScalable`, NCCL 2.23).
   */
  readonly id: UniqueId | readonly UniqueId[]
}

/** How one communicator is made from another. `signal` and `timeout` abort both while the call waits for other ranks. */
export interface DeriveOptions extends CommunicatorWaitOptions {
  /** Default: that of the communicator it is made from. */
  readonly config?: CommunicatorConfig | undefined
}

/** Which communicator this rank gets in a `split`. */
export interface SplitOptions extends DeriveOptions {
  /** Ranks with the same color get a communicator together; null: this rank gets none (`NCCL_SPLIT_NOCOLOR`). */
  readonly color: number | null
  /** Orders the ranks of a color; where it is the same the old rank does. Default: the old rank. */
  readonly key?: number | undefined
}

/** Who is left out of a `shrink`. */
export interface ShrinkOptions extends DeriveOptions {
  /** Ranks to leave out; they do not call `shrink`. */
  readonly exclude: Iterable<number>
  /**
   * Ends what is under way first (`NCCL_SHRINK_ABORT`): for ranks that are lost. Waits for such work reject with
   * CommunicatorAbortedError, and the old communicator can only be destroyed or aborted. Default: false.
   */
  readonly abort?: boolean | undefined
}

/** How large a communicator becomes by `grow`. */
export interface GrowOptions extends DeriveOptions {
  /** Number of ranks afterwards. */
  readonly worldSize: number
  /** On the one rank that made it with `createUniqueId()`; the new ranks have it too, other old ranks do not. */
  readonly id?: UniqueId | undefined
}

/** How a rank joins a communicator that grows. */
export interface JoinGrownOptions extends InitOptions {
  /** Device this rank works on: an object of `@shoal/driver`, anything with the device protocol, or an ordinal. */
  readonly device: DeviceLike | number
  /** Its place in the grown communicator, after those that were there before. */
  readonly rank: number
  /** Number of ranks afterwards. */
  readonly worldSize: number
  /** The id that a rank of the growing communicator made with `createUniqueId()`. */
  readonly id: UniqueId
}

export const largestInt = 0x7fff_ffff

export function requireOptions(options: unknown, api: string): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${api}: options are needed`)
}

/** Ordinals of devices, each named once. */
export function requireDevices(devices: unknown, api: string): number[] {
  if (typeof (devices as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator] !== 'function') {
    throw new TypeError(`${api}: devices must be a list of devices or ordinals`)
  }
  const ordinals = Array.from(devices as Iterable<DeviceLike | number>, (device, index) =>
    toDeviceOrdinal(device, api, `devices[${index}]`),
  )
  if (ordinals.length === 0) throw new RangeError(`${api}: the list of devices is empty`)
  const twice = ordinals.find((ordinal, index) => ordinals.indexOf(ordinal) !== index)
  if (twice !== undefined) throw new RangeError(`${api}: device ${twice} is named twice; NCCL allows one rank a device`)
  return ordinals
}

export function requireWorld(rank: unknown, worldSize: unknown, api: string): void {
  requireWhole(worldSize, 'worldSize', 1, largestInt, api)
  requireWhole(rank, 'rank', 0, (worldSize as number) - 1, api)
}

export function requireIds(ids: unknown, worldSize: number, api: string): readonly UniqueId[] {
  if (!Array.isArray(ids) || !ids.every(UniqueId._is)) {
    throw new TypeError(`${api}: id must be a UniqueId (see UniqueId.fromBytes), or a list of them`)
  }
  if (ids.length >= 1 && ids.length <= worldSize) return ids
  throw new RangeError(`${api}: there must be from 1 to ${worldSize} ids, one a rank at most, got ${ids.length}`)
}

export function requireExcluded(exclude: unknown, rank: number, worldSize: number, api: string): number[] {
  if (typeof (exclude as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator] !== 'function') {
    throw new TypeError(`${api}: exclude must be a list of ranks`)
  }
  const ranks = [...new Set(exclude as Iterable<number>)]
  for (const one of ranks) requireWhole(one, 'exclude', 0, worldSize - 1, api)
  if (ranks.length === 0) throw new RangeError(`${api}: exclude names no rank`)
  if (ranks.includes(rank)) throw new RangeError(`${api}: rank ${rank} is in exclude, so it must not call shrink`)
  return ranks.sort((a, b) => a - b)
}

export function requireWhole(value: unknown, name: string, least: number, most: number, api: string): void {
  if (typeof value !== 'number' || Number.isNaN(value)) throw new TypeError(`${api}: ${name} must be a number`)
  if (Number.isInteger(value) && value >= least && value <= most) return
  throw new RangeError(`${api}: ${name} must be a whole number from ${least} to ${most}, got ${value}`)
}
