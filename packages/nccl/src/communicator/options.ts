import {
  type DeviceLike,
  isArray,
  isDetached,
  type OptionKeys,
  propertyOf,
  requireInstance,
  requireInteger,
  requireOptions,
  toDeviceOrdinal,
  waitKeys,
  wrongType,
} from '@shoal/types'
import { type CommunicatorWaitOptions, readWait } from '../lifetime/waitOptions.js'
import type { CommunicatorConfig } from './config.js'
import type { Joining } from './init.js'
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
  /** Milliseconds for the init, from 0 to 2^31 - 1. Default: no limit. */
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

/**
 * How one communicator is made from another. `signal` and `timeout` abort both while the call waits for other ranks.
 */
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

export const initKeys: OptionKeys<InitOptions> = { config: true, ...waitKeys }
const initRankKeys: OptionKeys<InitRankOptions> = {
  device: true,
  rank: true,
  worldSize: true,
  id: true,
  ...initKeys,
}
export const splitKeys: OptionKeys<SplitOptions> = { color: true, key: true, ...initKeys }
export const shrinkKeys: OptionKeys<ShrinkOptions> = { exclude: true, abort: true, ...initKeys }
export const growKeys: OptionKeys<GrowOptions> = { worldSize: true, id: true, ...initKeys }

export const largestInt = 0x7fff_ffff

/** Ordinals of devices, each named once. */
export function requireDevices(devices: unknown, api: string): number[] {
  const ordinals = Array.from(requireList(devices, api, 'devices', 'devices or ordinals'), (device, index) =>
    toDeviceOrdinal(device as DeviceLike | number, api, `devices[${index}]`),
  )
  if (ordinals.length === 0) throw new RangeError(`${api}: devices must be a list of at least one, not an empty one`)
  const twice = ordinals.find((ordinal, index) => ordinals.indexOf(ordinal) !== index)
  if (twice === undefined) return ordinals
  throw new RangeError(`${api}: devices must be different ones, not ${twice} twice: NCCL allows one rank per device`)
}

/** How a rank is to join, checked. */
export function readJoining(options: InitRankOptions, api: string, grows: boolean): Joining {
  requireOptions(options, api, initRankKeys)
  const { rank, worldSize, config, id } = options
  const deviceOrdinal = toDeviceOrdinal(options.device, api, 'device')
  const size = requireInteger(worldSize, api, 'worldSize', 1, largestInt)
  requireInteger(rank, api, 'rank', 0, size - 1)
  const ids = grows ? [requireId(id, api)] : requireIds(id, worldSize, api)
  return { deviceOrdinal, rank, worldSize, ids, config, ...(grows ? { grows } : {}), ...readWait(options, api) }
}

export function requireId(id: unknown, api: string): UniqueId {
  return requireInstance(id, api, 'id', UniqueId as never)
}

/** One id, or a list of at most one for each rank. */
function requireIds(ids: unknown, worldSize: number, api: string): readonly UniqueId[] {
  if (!isArray(ids)) return [requireId(ids, api)]
  if (ids.length < 1 || ids.length > worldSize) {
    throw new RangeError(`${api}: id must be a list of 1 to ${worldSize} ids, not of ${ids.length}`)
  }
  return ids.map((id) => requireId(id, api))
}

export function requireExcluded(exclude: unknown, rank: number, worldSize: number, api: string): number[] {
  const ranks = [...new Set(requireList(exclude, api, 'exclude', 'ranks'))].map((one) =>
    requireInteger(one, api, 'exclude', 0, worldSize - 1),
  )
  if (ranks.length === 0) throw new RangeError(`${api}: exclude must be a list of at least one rank, not an empty one`)
  if (!ranks.includes(rank)) return ranks.sort((a, b) => a - b)
  throw new RangeError(`${api}: exclude must be a list of other ranks, not of rank ${rank}, which calls this`)
}

function requireList(value: unknown, api: string, name: string, of: string): Iterable<unknown> {
  if (typeof propertyOf(value, Symbol.iterator) === 'function' && !isDetached(value as never)) {
    return value as Iterable<unknown>
  }
  throw wrongType(api, name, `a list of ${of}`, value)
}
